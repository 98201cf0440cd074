"""Mends made round by round: those that can be made together at once, one alone where they don't all do what they
should. A mend stays only where the analysis of the mended text no longer finds the break.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.check import Result
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.text_edits import apply, cross, regions
from graphmend.transforms.fix import Fix, TextEdit, Unmendable
from graphmend.transforms.offers import Applied
from graphmend.transforms.permitted import Permitted, Place

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

#: steps of a chain: one mend may uncover the next (a kept tensor is then branched on)
_STEPS = 8
#: checks of one file; more are not known to be needed, and a rewrite that never ends would be a bug
_MOST = 500

#: how many states are kept: a mend that is tried alone after it was tried with others leads to one of the last ones
_REMEMBERED = 6

#: which of the findings in a text are to be mended
Wanted = Callable[[Source, Sequence["Finding"]], Iterable["Finding"]]


class Files(Protocol):
    """Files that are mended together: a break in one may only be seen from another that calls it."""

    @property
    def checked(self) -> Sequence[str]:
        """The paths of those that are checked."""

    def check(self, path: str) -> Result:
        """What the check of a file finds in the texts as they are now."""

    def source(self, path: str) -> Source | None:
        """A text as it is now; None where it is to stay."""

    def replace(self, source: Source) -> None:
        """Takes a mended text. From now on every check reads it."""

    def accepted(self, path: str) -> Collection[str]:
        """The kinds of differences that the user accepts in a file."""


@dataclass
class _Choice:
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


class _State:
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

    def places(self, path: str) -> list[Place]:
        return self._places.get(path, [])

    def findings(self, path: str) -> list[Finding]:
        return [place.finding for place in self.places(path)]

    def keys(self) -> set[tuple[str, str]]:
        """All findings by path and key."""
        return {(path, place.finding.key) for path, places in self._places.items() for place in places}


class Run:
    """Files on the way to the fixed point."""

    def __init__(self, files: Files, wanted: Wanted | None = None, *, captures: bool = False) -> None:
        """`captures`: the program keeps sizes that tensors decide in the graph where nothing needs to know them."""
        self._files, self._wanted, self._captures = files, wanted, captures
        self.applied: list[Applied] = []
        self.chains: list[tuple[Applied, list[Applied]]] = []
        """Mends that stayed for those that they made possible, and these."""
        self._reached: dict[str, set[str]] = {path: {path} for path in files.checked}
        """The files in which the check of a file has found something, and the file itself."""
        self._texts: dict[str, Source | None] = {}
        """The texts as they are now; None for those that are to stay."""
        self._checks = 0
        self._states: dict[frozenset[tuple[str, str]], dict[str, Result]] = {}
        """The results for the last texts, by path and text, the latest last."""
        self._parsed = lru_cache(maxsize=_REMEMBERED)(Source)
        self.state = self._state({}, {}, files.checked)

    def to_the_end(self, unsafe: bool, prefer_runtime: bool = False) -> Permitted:
        """Makes every permitted mend that removes a break, the safe ones first; says what was permitted in the end."""
        permitted = Permitted(False, prefer_runtime)
        while self.step(permitted):
            pass
        if unsafe:
            permitted = Permitted(True, prefer_runtime, permitted)
            while self.step(permitted):
                pass
        return permitted

    def step(self, permitted: Permitted) -> bool:
        """Makes mends that can be made together, and keeps those that remove their breaks; whether there were any to
        try.
        """
        state = self.state
        choices = self._choose(state, permitted)
        if not choices or self._checks > _MOST:
            return False
        first = choices[0].facts.statement
        of_one_statement = [choice for choice in choices if choice.facts.statement is first]
        while len(choices) > 1:
            after = self._apply(state, choices)
            good = [c for c in choices if after is not None and self._stays(state, after, c, choices, permitted)]
            removed = sum(not c.narrows for c in choices)
            if after is not None and len(good) == len(choices) and after.count <= state.count - removed:
                return self._keep(after, choices)
            self._revert(state)
            if after is not None and self._uncovered(state, choices, permitted, self._elsewhere(state, choices)):
                return True
            choices = good if 0 < len(good) < len(choices) else choices[:1]
        self._alone(state, choices[0], of_one_statement if choices[0] in of_one_statement else choices[:1], permitted)
        return True

    def left(self, path: str, permitted: Permitted) -> list[tuple[Finding, str]]:
        """The findings of a file that no permitted mend answers, and why."""
        return [(place.finding, permitted.first(place)[1]) for place in self._to_mend(self.state, path)]

    def _alone(self, state: _State, choice: _Choice, together: list[_Choice], permitted: Permitted) -> None:
        """One mend; where it only moves the break, with those of its statement and the mends of what they uncover."""
        stated = {(finding.path, finding.key) for choice in together for finding in choice.findings}
        if len(together) > 1 and self._uncovered(state, together, permitted, state.keys() - stated):
            return
        own = {(finding.path, finding.key) for finding in choice.findings}
        known, made = state.keys() - own, [choice]
        after = self._apply(state, made)
        less = after is not None and after.count < state.count + choice.narrows
        if after is not None and less and self._stays(state, after, choice, made, permitted):
            self._keep(after, made)
            return
        waits = after is not None and not self._lets_others(state, after, choice, made, permitted)
        for _ in range(_STEPS):
            more = [] if after is None or waits else self._choose(after, permitted, known)
            if after is None or not more:
                break
            after, made = self._apply(after, more), [*made, *more]
            if after is not None and after.count < state.count:
                self._keep(after, made, 1)
                return
        for_good = False
        if after is not None and len(made) == 1 and not waits and self._has_a_statement(state, choice):
            for_good = not self._choose(after, permitted.all, known)
        beside = self._elsewhere(state, [choice])  # it may do more with the mends of other breaks of its function
        if after is not None and not waits and self._uncovered(state, [choice], permitted, beside):
            return
        self._revert(state)
        why = "would stand in the way of an unsafe mend" if waits else "does not remove the break"
        permitted.refuse(choice.findings, choice.fix, choice.facts, f"`{choice.fix.rewrite}` {why}", for_good)

    @staticmethod
    def _elsewhere(state: _State, choices: list[_Choice]) -> set[tuple[str, str]]:
        """The findings in other functions than those that some mends are in."""
        here = {(c.finding.path, c.finding.function) for c in choices}
        every = ((path, finding) for path in state.sources for finding in state.findings(path))
        return {(path, finding.key) for path, finding in every if (path, finding.function) not in here}

    @staticmethod
    def _has_a_statement(state: _State, choice: _Choice) -> bool:
        """Are there no other breaks in the statement of a mend, with whose mends it might do more?"""
        own = {finding.key for finding in choice.findings}
        others = (place for place in state.places(choice.finding.path) if place.finding.key not in own)
        return all(place.facts is None or place.facts.statement is not choice.facts.statement for place in others)

    def _uncovered(
        self, state: _State, together: list[_Choice], permitted: Permitted, known: set[tuple[str, str]] | None
    ) -> bool:
        """Makes mends along with those of what they uncover, of findings that are not `known`, if fewer breaks are left
        then.
        """
        made, after = together, self._apply(state, together)
        for _ in range(_STEPS):
            more = [] if after is None else self._choose(after, permitted, known)
            if after is None or not more:
                break
            after, made = self._apply(after, more), [*made, *more]
            if after is not None and after.count <= state.count - len(together):
                self._keep(after, made, len(together))
                return True
        self._revert(state)
        return False

    def _keep(self, after: _State, choices: list[_Choice], first: int = 0) -> bool:
        """Takes a state and the mends that led to it, of which the `first` ones made the others possible."""
        self.state = after
        behind = [answer for choice in choices[first:] for answer in choice.answers]
        self.chains += [(answer, behind) for choice in choices[:first] for answer in choice.answers]
        self.applied += [answer for choice in choices for answer in choice.answers]
        return True

    # What may be mended

    def _to_mend(self, state: _State, path: str) -> list[Place]:
        places = state.places(path)
        if self._wanted is None or not places:
            return places
        wanted = {id(finding) for finding in self._wanted(state.sources[path], state.findings(path))}
        return [place for place in places if id(place.finding) in wanted]

    def _choose(self, state: _State, permitted: Permitted, known: set[tuple[str, str]] | None = None) -> list[_Choice]:
        """Mends that do not touch one another; only those of findings that are not `known`, where that is given."""
        chosen: list[_Choice] = []
        for path, source in state.sources.items():
            edits: list[TextEdit] = []
            to_mend = self._to_mend(state, path)
            for place in state.places(path) if to_mend else ():
                place.recall()
            for place in to_mend:
                finding = place.finding
                if known is not None and (path, finding.key) in known:
                    continue
                fix, facts = permitted.first(place)[0], place.facts
                if fix is None or facts is None:
                    continue
                try:
                    narrows = fix.narrows or (self._captures and fix.leaves_size)
                    choice = _Choice([Applied(finding, fix, source.text)], facts, fix.edits(), narrows)
                except Unmendable as error:
                    permitted.refuse([finding], fix, facts, str(error))
                    continue
                here = (c for c in chosen if c.finding.path == path and c.edits == choice.edits)
                if (same := next(here, None)) is not None:  # one for several findings; some of them may live on in it
                    same.answers.append(choice.answers[0]._replace(fix=same.fix))
                elif all(_apart(e, other) for e in choice.edits for other in edits) and not any(
                    c.finding.path == path and cross(c.edits, choice.edits) for c in chosen
                ):
                    edits += [e for e in choice.edits if e not in edits]
                    chosen.append(choice)
        return chosen

    # What a mend has done

    def _apply(self, state: _State, choices: list[_Choice]) -> _State | None:
        """The state after some mends; None where a text would not parse."""
        changed: dict[str, Source] = {}
        for path in dict.fromkeys(choice.finding.path for choice in choices):
            before = state.sources[path]
            after = self._parsed(apply(before.text, _all_edits(choices, path), before), path)
            if after.tree is None:
                return None
            changed[path] = after
        self._replace(changed)
        stale = [path for path in self._files.checked if not self._reached[path].isdisjoint(changed)]
        return self._state({**state.sources, **changed}, state.results, stale)

    def _revert(self, state: _State) -> None:
        self._replace({path: s for path, s in state.sources.items() if self._texts.get(path) is not s})

    def _replace(self, sources: dict[str, Source]) -> None:
        for path, source in sources.items():
            self._texts[path] = source
            self._files.replace(source)

    def _state(self, sources: dict[str, Source], results: dict[str, Result], stale: Iterable[str]) -> _State:
        """The state of texts, where the results of the `stale` files are not known yet."""
        texts = frozenset((path, source.text) for path, source in self._texts.items() if source is not None)
        known = self._states.pop(texts, None)
        self._checks += 1  # a state that is known counts too: mends that flip between two texts would never end
        if known is None:
            known = {**results, **{path: self._files.check(path) for path in stale}}
            if len(self._states) == _REMEMBERED:
                del self._states[next(iter(self._states))]
        results = self._states[texts] = known
        for path in stale:
            self._reached[path].update(results[path].elsewhere)
        for path in chain(self._files.checked, *(sorted(result.elsewhere) for result in results.values())):
            if path not in self._texts:
                self._texts[path] = self._files.source(path)
            if path not in sources and (source := self._texts[path]) is not None:
                sources[path] = source
        return _State(sources, results, self._files.accepted)

    def _stays(
        self, state: _State, after: _State, choice: _Choice, choices: list[_Choice], permitted: Permitted
    ) -> bool:
        """Is a break gone with a mend, or narrowed, with no new one in its place, and no other mend prevented?"""
        if choice.narrows:
            return self._lets_others(state, after, choice, choices, permitted)
        path, code = choice.finding.path, choice.finding.code
        if choice.finding.effect == "recompiles" and choice.facts.variation is not None:
            alike = [sum(_same(f, choice.finding) for f in one.findings(path)) for one in (state, after)]
            again = [_compilations(one, path, choice.facts.variation.name) for one in (state, after)]
            fewer = alike[1] < alike[0] and again[1] < again[0]
            return fewer and self._lets_others(state, after, choice, choices, permitted)
        old, new = regions(state.sources[path], choice.facts, choice.edits, _all_edits(choices, path))
        before = [f.code for f in state.findings(path) if _inside(f, state.sources[path], old)]
        behind = [f.code for f in after.findings(path) if _inside(f, after.sources[path], new)]
        gone = behind.count(code) < before.count(code) and len(behind) < len(before)
        return gone and self._lets_others(state, after, choice, choices, permitted)

    def _lets_others(
        self, state: _State, after: _State, choice: _Choice, choices: list[_Choice], permitted: Permitted
    ) -> bool:
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


def _compilations(state: _State, path: str, name: str) -> int:
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


def _all_edits(choices: list[_Choice], path: str) -> list[TextEdit]:
    return list(dict.fromkeys(e for c in choices if c.finding.path == path for e in c.edits))


def _inside(finding: Finding, source: Source, region: tuple[int, int]) -> bool:
    return region[0] <= source.lines.offset(finding.span.line - 1, finding.span.column) <= region[1]


def _apart(a: TextEdit, b: TextEdit) -> bool:
    """Do two edits not touch each other? Equal ones (the same import added twice) count as one."""
    return a == b or a.span[2:] < b.span[:2] or b.span[2:] < a.span[:2]
