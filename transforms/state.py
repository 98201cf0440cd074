"""The texts of files at one time, what the checks find in them, and whether a mend that led there may stay."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from graphmend.analysis.check import Result
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.text_edits import regions
from graphmend.transforms.fix import Fix, TextEdit
from graphmend.transforms.offers import Applied
from graphmend.transforms.permitted import Permitted, Place

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

#: a path, and the name of a function in that file
Function = tuple[str, str]
#: a path, and the key of a finding in that file
Key = tuple[str, str]


@dataclass
class Choice:
    """A mend that is to be made, and the findings that it answers."""

    answers: list[Applied]
    facts: FunctionFacts
    edits: tuple[TextEdit, ...]
    narrows: bool
    """Does it stay where its finding stays?"""

    @property
    def finding(self) -> Finding:
        return self.answers[0].finding

    @property
    def findings(self) -> list[Finding]:
        return [answer.finding for answer in self.answers]

    @property
    def fix(self) -> Fix:
        return self.answers[0].fix

    @property
    def function(self) -> Function:
        return self.finding.path, self.finding.function


class State:
    """The texts at one time, and what the checks find in them."""

    def __init__(
        self, sources: dict[str, Source], results: dict[str, Result], accepted: Callable[[str], Collection[str]]
    ) -> None:
        self.sources, self.results, self._accepted = sources, results, accepted

    @cached_property
    def _places(self) -> dict[str, list[Place]]:
        """By path, in order of the text. Keys of findings do not tell them apart: each check numbers those that are
        alike, and reaches others of them.
        """
        found: dict[str, dict[tuple[object, str], Place]] = {}
        for result in self.results.values():
            for finding in chain(result.findings, *result.elsewhere.values()):
                known, place = found.setdefault(finding.path, {}), (finding.span, finding.code)
                if place in known:
                    known[place].add(finding, result)
                else:
                    known[place] = Place(finding, result, self._accepted(finding.path))
        return {path: sorted(places.values(), key=_position) for path, places in found.items()}

    @cached_property
    def count(self) -> int:
        return sum(map(len, self._places.values()))

    @cached_property
    def counts(self) -> Counter[Function]:
        """How many breaks there are in each function."""
        return Counter((path, p.finding.function) for path, places in self._places.items() for p in places)

    def places(self, path: str) -> list[Place]:
        return self._places.get(path, [])

    def findings(self, path: str) -> list[Finding]:
        return [place.finding for place in self.places(path)]

    def keys(self) -> set[tuple[str, str]]:
        """All findings by path and key."""
        return {(path, place.finding.key) for path, places in self._places.items() for place in places}


def stays(state: State, after: State, choice: Choice, choices: list[Choice], permitted: Permitted) -> bool:
    """Is a break gone with a mend, or narrowed, with no new one in its place, and no other mend prevented?"""
    if choice.narrows:
        return lets_others(state, after, choice, choices, permitted)
    path, code = choice.finding.path, choice.finding.code
    if choice.finding.effect == "recompiles" and choice.facts.variation is not None:
        alike = [sum(_same(f, choice.finding) for f in one.findings(path)) for one in (state, after)]
        again = [_compilations(one, path, choice.facts.variation.name) for one in (state, after)]
        fewer = alike[1] < alike[0] and again[1] < again[0]
        return fewer and lets_others(state, after, choice, choices, permitted)
    old, new = regions(state.sources[path], choice.facts, choice.edits, all_edits(choices, path))
    before = [f.code for f in state.findings(path) if _inside(f, state.sources[path], old)]
    behind = [f.code for f in after.findings(path) if _inside(f, after.sources[path], new)]
    gone = behind.count(code) < before.count(code) and len(behind) < len(before)
    return gone and lets_others(state, after, choice, choices, permitted)


def in_vain(state: State, after: State, choice: Choice, choices: list[Choice]) -> bool:
    """Do breaks stand in a mend's place of which no mend, of whatever kind, knows a way on?"""
    path = choice.finding.path
    _, new = regions(state.sources[path], choice.facts, choice.edits, all_edits(choices, path))
    places = [place for place in after.places(path) if _inside(place.finding, after.sources[path], new)]
    return bool(places) and all(place.best is None for place in places)


def lets_others(state: State, after: State, choice: Choice, choices: list[Choice], permitted: Permitted) -> bool:
    """Can what stands around a safe mend still be mended as it could before, where that is unsafe?"""
    if permitted.unsafe:
        return True
    path, inner = choice.finding.path, choice.facts.statement
    answered = {finding.key for c in choices for finding in c.findings}
    for place in state.places(path):
        if place.finding.key in answered or place.facts is None or not _around(place.facts.statement, inner):
            continue
        fix = place.best if permitted.first(place)[0] is None else None
        now = next((other for other in after.places(path) if other.finding.key == place.finding.key), None)
        if fix is not None and now is not None and (now.best is None or now.best.rewrite != fix.rewrite):
            return False
    return True


def _same(one: Finding, other: Finding) -> bool:
    """Do two findings say that one thing varies? Where the call stands that is compiled anew may have changed."""
    return (one.code, one.function, one.facts) == (other.code, other.function, other.facts)


def _compilations(state: State, path: str, name: str) -> int:
    """How often a function is compiled anew in the calls in sight, as a file's findings say."""
    variations = [place.facts.variation for place in state.places(path) if place.facts is not None]
    return sum(len(each.changes) for each in variations if each is not None and each.name == name)


def _position(place: Place) -> tuple[int, ...]:
    return place.finding.span[:2]


def _around(outer: ast.stmt, inner: ast.stmt) -> bool:
    """Does a statement hold another one, or is it the same?"""
    begins = (outer.lineno, outer.col_offset) <= (inner.lineno, inner.col_offset)
    ends = (inner.end_lineno or 0, inner.end_col_offset or 0) <= (outer.end_lineno or 0, outer.end_col_offset or 0)
    return begins and ends


def all_edits(choices: list[Choice], path: str) -> list[TextEdit]:
    return list(dict.fromkeys(e for c in choices if c.finding.path == path for e in c.edits))


def _inside(finding: Finding, source: Source, region: tuple[int, int]) -> bool:
    return region[0] <= source.lines.offset(finding.span.line - 1, finding.span.column) <= region[1]
