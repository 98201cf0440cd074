"""Which Python files lie under the paths that a user names: `.gitignore`, `exclude`, links and paths given twice.

Folders are walked in the order of their names and links to folders are not followed, so links in circles end nowhere.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from graphmend.workspace.config import Configuration, Configurations, absolute
from graphmend.workspace.files import reason

#: Python files and notebooks
SUFFIXES = (".py", ".ipynb")


@dataclass
class Discovery:
    """The files found, each once, and what could not be looked at, as one line each."""

    files: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Patterns:
    """Patterns of one kind, with the folder that they are relative to."""

    folder: Path
    spec: GitIgnoreSpec

    def verdict(self, path: Path, is_folder: bool) -> bool | None:
        """Whether `path` is left out; None where these patterns say nothing about it."""
        try:
            relative = path.relative_to(self.folder).as_posix()
        except ValueError:
            return None
        return self.spec.check_file(relative + "/" if is_folder else relative).include


def discover(paths: Iterable[Path], configurations: Configurations, *, force_exclude: bool = False) -> Discovery:
    """The Python files and notebooks under `paths`. One that is named itself is taken even where it is excluded,
    unless forced.
    """
    found = Discovery()
    seen: set[str] = set()
    for path in map(absolute, paths):
        if not path.exists():
            found.problems.append(f"{path} does not exist")
            continue
        for file in _Walk(path, configurations, found.problems).files(force_exclude):
            real = os.path.realpath(file)
            if real not in seen:
                seen.add(real)
                found.files.append(file)
    return found


class _Walk:
    """The walk below one path. What is named on purpose is looked into: patterns against it do not count below."""

    def __init__(self, top: Path, configurations: Configurations, problems: list[str]) -> None:
        self._top = top
        self._folder = top if top.is_dir() else top.parent
        self._configurations = configurations
        self._problems = problems
        self._excludes: dict[Path, _Patterns] = {}
        respects = configurations.of_folder(self._folder)["respect-gitignore"]
        self._ignores = list(_ignores_above(self._folder)) if respects else []

    def files(self, force_exclude: bool) -> Iterator[Path]:
        if force_exclude and self._is_excluded():
            return
        if self._top == self._folder:
            yield from self._below(self._top, [p for p in self._ignores if not _covers(p, self._top)])
        else:
            yield self._top

    def _below(self, folder: Path, ignores: list[_Patterns]) -> Iterator[Path]:
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as error:
            self._problems.append(f"{folder}: {reason(error)}")
            return
        configuration = self._configurations.of_folder(folder)
        if configuration["respect-gitignore"] and (own := _read_ignore(folder / ".gitignore", folder)):
            ignores = [*ignores, own]
        exclude = self._exclude(configuration)
        for entry in entries:
            path = folder / entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if not is_folder and not (entry.name.endswith(SUFFIXES) and _is_file(entry)):
                continue
            if exclude.verdict(path, is_folder) or _ignored(path, is_folder, ignores):
                continue
            if is_folder:
                yield from self._below(path, ignores)
            else:
                yield path

    def _exclude(self, configuration: Configuration) -> _Patterns:
        """The patterns of `exclude` that do not leave out the top itself; outside the root they are relative to it."""
        root = configuration.root
        if root not in self._excludes:
            folder = root if self._top.is_relative_to(root) else self._top
            each = ((p, _Patterns(folder, GitIgnoreSpec.from_lines([p]))) for p in configuration.exclude)
            kept = [pattern for pattern, alone in each if not _covers(alone, self._top)]
            self._excludes[root] = _Patterns(folder, GitIgnoreSpec.from_lines(kept))
        return self._excludes[root]

    def _is_excluded(self) -> bool:
        configuration = self._configurations.of_folder(self._folder)
        spec = _Patterns(configuration.root, GitIgnoreSpec.from_lines(configuration.exclude))
        is_folder = self._top == self._folder
        return bool(spec.verdict(self._top, is_folder)) or _ignored(self._top, is_folder, self._ignores)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link in a circle
        return False


def _covers(patterns: _Patterns, folder: Path) -> bool:
    return folder != patterns.folder and bool(patterns.verdict(folder, True))


def _ignored(path: Path, is_folder: bool, ignores: list[_Patterns]) -> bool:
    """git's order: the innermost file that says anything decides."""
    for patterns in reversed(ignores):
        verdict = patterns.verdict(path, is_folder)
        if verdict is not None:
            return verdict
    return False


def _ignores_above(folder: Path) -> Iterator[_Patterns]:
    """The ignore files of a repository from its root to the folder above `folder`; none outside of a repository."""
    above = [folder, *folder.parents]
    depth = next((i for i, f in enumerate(above) if (f / ".git").exists()), None)
    if depth is None:
        return
    top = above[depth]
    if patterns := _read_ignore(top / ".git" / "info" / "exclude", top):
        yield patterns
    for outer in reversed(above[1 : depth + 1]):
        if patterns := _read_ignore(outer / ".gitignore", outer):
            yield patterns


def _read_ignore(file: Path, folder: Path) -> _Patterns | None:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    return _Patterns(folder, GitIgnoreSpec.from_lines(lines))
