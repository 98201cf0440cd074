"""Mends made round by round: those that can be made together at once, one alone where they don't all do what they
should. A mend stays only where the analysis of the mended text no longer finds the break.

A check reads whole files, and the mends of one function seldom decide what becomes of another's. So each function's
mends are tried in an order of their own (`attempt.py`), and one check answers for all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.check import Result
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.traversal import statements
from graphmend.transforms.attempt import Lane
from graphmend.transforms.code.text_edits import apply, cross
from graphmend.transforms.fix import TextEdit, Unmendable
from graphmend.transforms.offers import Applied
from graphmend.transforms.permitted import Permitted, Place
from graphmend.transforms.state import Choice, Function, State, all_edits

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding

#: steps of a chain: one mend may uncover the next (a kept tensor is then branched on)
_STEPS = 8
#: checks of one file; more are not known to be needed, and a rewrite that never ends would be a bug
_MOST = 500

_CONSTRUCTORS = ("__init__", "__new__", "__post_init__")

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


class Run:
    """Files on the way to the fixed point."""

    def __init__(
        self, files: Files, wanted: Wanted | None = None, *, captures: bool = False, late: bool = False
    ) -> None:
        """`captures`: the program keeps sizes that tensors decide in the graph where nothing needs to know them.
        `late`: objects may be made before the mended code is there.
        """
        self._files, self._wanted, self._captures, self._late = files, wanted, captures, late
        self.applied: list[Applied] = []
        self.chains: list[tuple[Applied, list[Applied]]] = []
        """Mends that stayed for those that they made possible, and these."""
        self.when_kept: Callable[[State, State], None] = lambda before, after: None
        """Called after each step whose mends stay."""
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
        """Makes mends of every function, and keeps those that remove their breaks; whether there were any to try."""
        state = self.state
        choices = self._choose(state, permitted)
        if not choices or self._checks > _MOST:
            return False
        functions = list(dict.fromkeys(choice.function for choice in choices))
        lanes = [Lane(state, [c for c in choices if c.function == each], permitted, each) for each in functions]
        if len(lanes) > 1 and self._side_by_side(state, lanes, permitted):
            return True
        for function in functions:  # what becomes of one cannot be told apart from what becomes of another
            state = self.state
            if own := [choice for choice in self._choose(state, permitted) if choice.function == function]:
                self._side_by_side(state, [Lane(state, own, permitted, None)], permitted)
        return True

    def answered(self, source: Source) -> frozenset[str]:
        """The keys of the findings in a text that mends have answered; where some were narrowed only they are there."""
        return frozenset(one.finding.key for one in self.applied if one.text == source.text and not one.fix.narrows)

    def left(self, path: str, permitted: Permitted) -> list[tuple[Finding, str]]:
        """The findings of a file that no permitted mend answers, and why."""
        return [(place.finding, permitted.first(place)[1]) for place in self._to_mend(self.state, path)]

    def _side_by_side(self, state: State, lanes: list[Lane], permitted: Permitted) -> bool:
        """Tries the mends of some functions until each has mends that stay, or none. False where that says nothing, as
        the mends of one have done something to others: then no mend is made, and none refused.
        """
        settled: set[Function | None] = set()
        while trying := [lane for lane in lanes if lane.attempt is not None]:
            after, made = self._attempt(state, trying, permitted)
            failed = [lane for lane in trying if lane.attempt is not None and not lane.attempt.succeeded]
            if len(lanes) > 1 and (after is None or any(lane.function in settled for lane in failed)):
                self._revert(state)
                return False
            if not failed and after is not None:
                self._keep(after, made, trying)
                break
            for lane in trying:
                if lane in failed:
                    lane.go_on()
                elif lane.attempt is not None:
                    settled.add(lane.function)
                    lane.attempt = lane.attempt.again()
        else:
            self._revert(state)
        for lane in lanes:
            for choice, why, for_good in lane.refused:
                permitted.refuse(choice.findings, choice.fix, choice.facts, why, for_good)
        return True

    def _attempt(self, state: State, lanes: list[Lane], permitted: Permitted) -> tuple[State | None, list[Choice]]:
        """Makes the mends that some functions try, along with those of what they uncover; None where a text would not
        parse, or functions that none of them is about have more breaks then.
        """
        self._revert(state)
        made = [choice for lane in lanes if lane.attempt is not None for choice in lane.attempt.choices]
        after = self._apply(state, made)
        for lane in lanes:
            lane.begun(after, made)
        for _ in range(_STEPS):
            if after is None or self._others_break(state, after, lanes):
                return None, made
            more = self._choose(after, permitted, lanes)
            for lane in lanes:
                self._see_no_more(after, lane, more, permitted)
            if not more:
                break
            after, made = self._apply(after, more), [*made, *more]
            for lane in lanes:
                if own := _of(lane, more):
                    lane.went_on(after, own)
        return after, made

    @staticmethod
    def _others_break(state: State, after: State, lanes: list[Lane]) -> bool:
        """Are there more breaks in functions that are nobody's?"""
        own = {lane.function for lane in lanes}
        return None not in own and any(
            count > state.counts[function] for function, count in after.counts.items() if function not in own
        )

    def _see_no_more(self, after: State, lane: Lane, more: list[Choice], permitted: Permitted) -> None:
        """Notes that an attempt has come to its end, and whether any mend could go on from there."""
        attempt = lane.attempt
        if attempt is None or attempt.succeeded or attempt.stuck or _of(lane, more):
            return
        if attempt.alone:
            attempt.hopeless = len(attempt.made) == 1 and not self._choose(after, permitted.all, [lane])
            lane.attempt = lane.beside(attempt)
            attempt.nothing_beside = not self._choose(after, permitted, [lane])
            lane.attempt = attempt
        attempt.stuck = True

    def _keep(self, after: State, made: list[Choice], lanes: list[Lane]) -> None:
        """Takes a state and the mends that led to it, of which the first ones of a lane may be there for the others."""
        before, self.state = self.state, after
        for attempt in (lane.attempt for lane in lanes if lane.attempt is not None):
            behind = [answer for choice in attempt.made[attempt.first :] for answer in choice.answers]
            first = attempt.choices if attempt.first else []
            self.chains += [(answer, behind) for choice in first for answer in choice.answers]
        self.applied += [answer for choice in made for answer in choice.answers]
        self.when_kept(before, after)

    # What may be mended

    def _to_mend(self, state: State, path: str) -> list[Place]:
        places = state.places(path)
        if self._wanted is None or not places:
            return places
        wanted = {id(finding) for finding in self._wanted(state.sources[path], state.findings(path))}
        return [place for place in places if id(place.finding) in wanted]

    def _choose(self, state: State, permitted: Permitted, lanes: Sequence[Lane] | None = None) -> list[Choice]:
        """Mends that do not touch one another; only those that one of the `lanes` is open to, where they are given."""
        chosen: list[Choice] = []
        for path, source in state.sources.items():
            edits: list[TextEdit] = []
            to_mend = self._to_mend(state, path)
            for place in state.places(path) if to_mend else ():
                place.recall()
            for place in to_mend:
                finding = place.finding
                function: Function = (path, finding.function)
                if lanes is not None and not any(lane.is_open_to(function, (path, finding.key)) for lane in lanes):
                    continue
                fix, facts = permitted.first(place)[0], place.facts
                if fix is None or facts is None:
                    continue
                try:
                    narrows = fix.narrows or (self._captures and fix.leaves_size)
                    choice = Choice([Applied(finding, fix, source.text)], facts, fix.edits(), narrows)
                except Unmendable as error:
                    permitted.refuse([finding], fix, facts, str(error))
                    continue
                if self._late and any(_is_of_constructor(edit, source) for edit in choice.edits):
                    permitted.refuse([finding], fix, facts, "objects may have been made without it")
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

    def _apply(self, state: State, choices: list[Choice]) -> State | None:
        """The state after some mends; None where a text would not parse."""
        changed: dict[str, Source] = {}
        for path in dict.fromkeys(choice.finding.path for choice in choices):
            before = state.sources[path]
            after = self._parsed(apply(before.text, all_edits(choices, path), before), path)
            if after.tree is None:
                return None
            changed[path] = after
        self._replace(changed)
        stale = [path for path in self._files.checked if not self._reached[path].isdisjoint(changed)]
        return self._state({**state.sources, **changed}, state.results, stale)

    def _revert(self, state: State) -> None:
        self._replace({path: s for path, s in state.sources.items() if self._texts.get(path) is not s})

    def _replace(self, sources: dict[str, Source]) -> None:
        for path, source in sources.items():
            self._texts[path] = source
            self._files.replace(source)

    def _state(self, sources: dict[str, Source], results: dict[str, Result], stale: Iterable[str]) -> State:
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
        return State(sources, results, self._files.accepted)


def _of(lane: Lane, choices: list[Choice]) -> list[Choice]:
    """The mends that are a lane's."""
    return [choice for choice in choices if lane.function is None or lane.function == choice.function]


def _is_of_constructor(edit: TextEdit, source: Source) -> bool:
    """Does an edit change how objects of a class are made?"""
    nodes = statements(source.tree) if source.tree is not None else ()
    makes = (n for n in nodes if isinstance(n, ast.FunctionDef) and n.name in _CONSTRUCTORS)
    return any(n.lineno <= edit.span.line <= (n.end_lineno or n.lineno) for n in makes)


def _apart(a: TextEdit, b: TextEdit) -> bool:
    """Do two edits not touch each other? Equal ones (the same import added twice) count as one."""
    return a == b or a.span[2:] < b.span[:2] or b.span[2:] < a.span[:2]
