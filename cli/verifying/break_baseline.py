"""`verify --baseline FILE`: only breaks that the file does not know are shown and count.

A break is known by its function and the text of its line: TorchDynamo's ids, reasons and columns change from one torch
to the next, and lines move. The file may be the one that `check` writes; each keeps the other's part.
"""

from __future__ import annotations

import hashlib
import linecache
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from graphmend.cli.adoption import baseline

if TYPE_CHECKING:
    from graphmend.dynamo.report import Break, Report, TargetReport
    from graphmend.dynamo.watched_command import Watched

#: the part of a baseline file that holds breaks
PART = "breaks"

_Place = tuple[str, int]


def write(path: Path, breaks: Iterable[Break]) -> int:
    """Write the breaks of a run as known, instead of those before. Returns in how many places."""
    found: dict[str, list[str]] = {}
    for (file, _), key in sorted(_places(breaks).items()):
        found.setdefault(file, []).append(key)
    return baseline.save(path, found, part=PART)


def load(path: Path) -> baseline.Known:
    """The places that a baseline file knows; complains where it is none."""
    return baseline.load(path, PART)


class Known:
    """What a baseline knows, held against the breaks of one run."""

    def __init__(self, path: Path, breaks: Iterable[Break]) -> None:
        """`breaks` are all of the run: of like places, those nearest to the top of the file are the known ones."""
        left = load(path)
        self._places: set[_Place] = set()
        for place, key in sorted(_places(breaks).items()):
            counts = left.get(place[0], Counter())
            if counts[key] > 0:
                counts[key] -= 1
                self._places.add(place)

    def new(self, breaks: Sequence[Break]) -> tuple[Break, ...]:
        return tuple(item for item in breaks if (item.path, item.span.line) not in self._places)

    def report(self, report: Report) -> Report:
        """A report without known breaks; how many there are stands in each target."""
        after = self.report(report.after) if report.after is not None else None
        return replace(report, targets=tuple(map(self._target, report.targets)), after=after)

    def _target(self, target: TargetReport) -> TargetReport:
        new = self.new(target.breaks)
        return replace(target, breaks=new, known=len(target.breaks) - len(new))

    def watched(self, watched: Watched) -> Watched:
        new = self.new(watched.breaks)
        return replace(watched, breaks=new, known=len(watched.breaks) - len(new))


def _places(breaks: Iterable[Break]) -> dict[_Place, str]:
    """The keys of breaks by the line that they stand on; one line counts once."""
    return {(item.path, item.span.line): _key(item) for item in breaks}


def _key(item: Break) -> str:
    text = " ".join((item.source or linecache.getline(item.path, item.span.line)).split())
    function = item.function.rpartition(".")[2]  # Python 3.10 has no qualified names in code objects
    return hashlib.blake2b(f"{function}|{text}".encode(), digest_size=8).hexdigest()
