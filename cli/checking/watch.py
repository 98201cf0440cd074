"""`check --watch`: files are checked again when they change, together with those that import them. What their importers
beside the named folders find in them is told as `check` tells it.

Files are looked at, not listened to: that needs no library, works on every file system, and the pauses grow with the
number of files, so that looking takes a small part of the time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from graphmend.analysis.syntax.source import Source
from graphmend.cli.checking.callers import with_callers
from graphmend.cli.checking.file_checker import Checker
from graphmend.cli.checking.file_report import FileReport
from graphmend.cli.checking.plan import Plan
from graphmend.workspace import files
from graphmend.workspace.importers import MANY, all_importers, importers
from graphmend.workspace.notebooks import reading

PAUSE = 0.05
"""Seconds between two looks."""
SHARE = 10
"""A pause is at least as many times as long as a look takes."""
SETTINGS = ("pyproject.toml", "graphmend.toml", ".gitignore")


class Round(NamedTuple):
    """The reports of all files, after what changed was checked."""

    reports: list[FileReport]
    changed: list[Path]
    seconds: float


Stamp = tuple[int, int]
Find = Callable[[], Sequence[Path]]


def rounds(plan: Plan, find: Find) -> Iterator[Round]:
    """The first check, and one after each change, without end. `find` gives the files as they are now."""
    while True:
        yield from _under_same_settings(plan, find)


def _under_same_settings(plan: Plan, find: Find) -> Iterator[Round]:
    checker = Checker(replace(plan, cache=False))
    began, paths = time.perf_counter(), find()
    around = _around(paths)
    seen, settings = _stamps([*paths, *around]), _stamps(_settings(paths))
    reports = {path: checker.check(path) for path in [*paths, *around]}
    yield Round(_told(reports, around), list(paths), time.perf_counter() - began)
    while True:
        now = _next(lambda: [*find(), *around], seen, settings)  # noqa: B023
        if now is None:
            return
        began = time.perf_counter()
        changed = [path for path in {**seen, **now} if seen.get(path) != now.get(path)]
        own = {path: stamp for path, stamp in now.items() if path not in around}
        around = _around(list(own))
        now = {**own, **_stamps(around)}
        stale = {*changed, *_importing(changed, now)}
        _forget(checker, changed, stale)
        fresh = {path: checker.check(path) for path in now if path in stale or path not in reports}
        reports = {path: fresh.get(path) or reports[path] for path in now}
        seen = now
        yield Round(_told(reports, around), changed, time.perf_counter() - began)


def _around(paths: Sequence[Path]) -> list[Path]:
    """The files beside those that are watched that import them, unless these are too many to look at."""
    found = all_importers(paths, MANY)
    return found if len(found) <= MANY else []


def _told(reports: dict[Path, FileReport], around: Container[Path]) -> list[FileReport]:
    """The reports of the watched files, with what their importers say of them."""
    own = [report for path, report in reports.items() if path not in around]
    return with_callers(own, (report for path, report in reports.items() if path in around))


def _next(find: Find, seen: dict[Path, Stamp], settings: dict[Path, Stamp]) -> dict[Path, Stamp] | None:
    """The files and their stamps, once they are others than `seen`; None once the settings are others."""
    while True:
        began = time.perf_counter()
        now = _stamps(find())
        if _stamps(_settings(now)) != settings:
            return None
        if now != seen:
            return now
        time.sleep(max(PAUSE, SHARE * (time.perf_counter() - began)))


def _importing(changed: Sequence[Path], paths: Container[Path]) -> set[Path]:
    """The files, of those that are watched, that import changed ones, or import what does."""
    found: set[Path] = set()
    more = list(changed)
    while more:
        more = [path for path in importers(more) if path in paths and path not in found]
        found.update(more)
    return found


def _stamps(paths: Iterable[Path]) -> dict[Path, Stamp]:
    """When each file was written, and how long it is; files that have gone meanwhile are left out."""
    found = {}
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            continue
        found[path] = status.st_mtime_ns, status.st_size
    return found


def _settings(paths: Iterable[Path]) -> list[Path]:
    """The files that may hold settings for these."""
    folders = {folder for path in paths for folder in path.parents}
    return [folder / name for folder in sorted(folders) for name in SETTINGS]


def _forget(checker: Checker, changed: Iterable[Path], stale: Iterable[Path]) -> None:
    """Lets a checker read changed files again, and those that import them."""
    importing = [str(path) for path in stale]
    for path in changed:
        try:
            text = reading.read(path).text
        except files.FileProblem:
            text = ""
        checker.replace(Source(text, str(path)), importing)
        checker.texts.pop(str(path), None)
