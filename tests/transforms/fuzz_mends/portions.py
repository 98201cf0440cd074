"""Campaigns in portions, each kept in a file: one that was interrupted goes on, and where a fault was mended only the
programs that were wrong are looked at again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

from fuzz_mends.campaign import Plan, Summary, Told, carried_out, safely_judged, warm
from fuzz_mends.program import Program
from fuzz_mends.verdict import Wrong

Judge = Callable[[Plan, Told | None], Summary]


def in_portions(plan: Plan, size: int, folder: Path, told: Told | None = None, judge: Judge = carried_out) -> None:
    """Carries out what is not kept in the folder yet. The wrong programs of a portion that is are judged again."""
    folder.mkdir(parents=True, exist_ok=True)
    for first in range(plan.first, plan.first + plan.programs, size):
        count = min(size, plan.first + plan.programs - first)
        path = folder / f"{plan.seed}-{first}-{count}.json"
        if path.exists():
            found = _read(path)
            found.wrong = _still_wrong(found.wrong, plan.offers)
        else:
            found = judge(replace(plan, first=first, programs=count), told)
        path.write_text(json.dumps(_as_data(found), indent=1), "utf-8")


def together(folder: Path) -> Summary:
    """The sum of all portions that a folder keeps."""
    found = Summary()
    for path in sorted(folder.glob("*.json")):
        one = _read(path)
        found.programs += one.programs
        found.compiled += one.compiled
        found.seconds += one.seconds
        found.wrong += one.wrong
        for name in _COUNTS:
            getattr(found, name).update(getattr(one, name))
    return found


_COUNTS = ("statuses", "changed", "mends", "differing", "kinds")


def _still_wrong(wrong: list[Wrong], offers: int) -> list[Wrong]:
    programs = {one.program.seed: one.program for one in wrong}
    if programs:
        warm(compiling=True)
    return [w for program in programs.values() for w in safely_judged(program, compiled=True, offers=offers).wrong]


def _as_data(found: Summary) -> dict[str, object]:
    counts = {name: [[key, count] for key, count in sorted(getattr(found, name).items())] for name in _COUNTS}
    wrong = [asdict(one) for one in found.wrong]
    return {"programs": found.programs, "compiled": found.compiled, "seconds": found.seconds, "wrong": wrong, **counts}


def _read(path: Path) -> Summary:
    kept = json.loads(path.read_text("utf-8"))
    wrong = [Wrong(**{**one, "program": _program(one["program"])}) for one in kept.pop("wrong")]
    counts = {
        name: Counter({tuple(key) if isinstance(key, list) else key: count for key, count in kept.pop(name)})
        for name in _COUNTS
    }
    return Summary(**kept, **counts, wrong=wrong)


def _program(kept: dict[str, object]) -> Program:
    return Program(str(kept["seed"]), str(kept["text"]), tuple(kept["rows"]))  # type: ignore[arg-type]
