"""What breaks the graphs of many models, counted: each cause with its places, plain and mended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Line = Mapping[str, Any]


class Place(NamedTuple):
    """A row of a file, and its text."""

    filename: str
    row: int
    source: str


@dataclass
class Cause:
    """One kind of break. Each place counts once for every model that breaks there."""

    name: str
    plain: int = 0
    mended: int = 0
    models: set[str] = field(default_factory=set)
    places: dict[Place, list[int]] = field(default_factory=dict)
    """How many models break at a place, plain and mended."""

    def add(self, model: str, place: Place, *, mended: bool) -> None:
        self.models.add(model)
        self.places.setdefault(place, [0, 0])[mended] += 1
        if mended:
            self.mended += 1
        else:
            self.plain += 1

    def most(self) -> list[tuple[Place, list[int]]]:
        """The places, those first at which most models break."""
        return sorted(self.places.items(), key=lambda item: (-item[1][0], -item[1][1], item[0]))


def causes(lines: Iterable[Line]) -> list[Cause]:
    """The causes, the most frequent first."""
    found: dict[str, Cause] = {}
    for line in lines:
        for model, item, mended in _breaks(line):
            name = f"{item['gb_id']} {item['gb_type']}" if item["gb_id"] else item["gb_type"]
            place = Place(item["filename"], item["location"]["row"], item["source"])
            found.setdefault(name, Cause(name)).add(model, place, mended=mended)
    return sorted(found.values(), key=lambda cause: (-cause.plain, -cause.mended, cause.name))


def _breaks(line: Line) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """Each break of a line: the model, the break, and whether the mended text has it."""
    report = line["report"]
    if report is None:
        return
    # where nothing was mended, the mended text is the plain one
    after: Sequence[Any] = report["after"]["targets"] if report["after"] is not None else report["targets"]
    for targets, mended in ((report["targets"], False), (after if line["options"]["mended"] else (), True)):
        for target in targets:
            model = f"{line['target']}:{target['name']}"
            yield from ((model, item, mended) for item in target["breaks"])
