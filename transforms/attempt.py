"""In which order the mends of one function are tried: all of them, those that remove their breaks, one alone; each time
along with the mends of what they uncover, where they don't remove their breaks by themselves.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from graphmend.transforms.permitted import Permitted
from graphmend.transforms.state import Choice, Function, Key, State, in_vain, lets_others, stays


@dataclass
class Attempt:
    """Mends that are made together, and what has become of them so far."""

    choices: list[Choice]
    known: set[Key]
    """The findings whose mends are not made along with them."""
    uncovers: int
    """How many breaks less there have to be where mends of what they uncover are made as well."""
    enough: bool = True
    """May they stay without any other mends?"""
    made: list[Choice] = field(default_factory=list)
    """Their mends, and those of what they have uncovered."""
    after: State | None = None
    """The texts with their mends alone; None where one would not parse."""
    good: list[Choice] = field(default_factory=list)
    """Those that remove their breaks."""
    in_vain: list[Choice] = field(default_factory=list)
    """Those behind which breaks stand that no mend knows a way on from."""
    succeeded: bool = False
    stuck: bool = False
    """Is there nothing more to make?"""
    waits: bool = False
    """Would it prevent other mends?"""
    hopeless: bool = False
    """Is there no mend, of whatever kind, of what it uncovers?"""
    nothing_beside: bool = False
    """Is there no permitted mend of other breaks of its function, either?"""

    def again(self) -> Attempt:
        """The same attempt, from its beginning."""
        return Attempt(self.choices, self.known, self.uncovers, self.enough)

    @property
    def first(self) -> int:
        """How many of the mends are only there for the others."""
        return len(self.choices) if len(self.made) > len(self.choices) else 0

    @property
    def alone(self) -> bool:
        """Is this the attempt with one mend, and what comes of it and was not there before?"""
        return self.enough and len(self.choices) == 1


class Lane:
    """The mends of one function on their way, beside those of other functions, or those of all functions."""

    def __init__(self, state: State, choices: list[Choice], permitted: Permitted, function: Function | None) -> None:
        """`function` is the one whose breaks count; None where all do."""
        self._state, self._permitted, self.function = state, permitted, function
        self.refused: list[tuple[Choice, str, bool]] = []
        """The mends that are not to be tried again, why, and whether it is for good."""
        self._order = self._attempts(choices)
        self.attempt: Attempt | None = next(self._order)

    def go_on(self) -> None:
        """Turns to the next attempt, if there is one."""
        self.attempt = next(self._order, None)

    def is_open_to(self, function: Function, key: Key) -> bool:
        """Is the mend of a finding to be made along with the attempt?"""
        attempt = self.attempt
        own = self.function is None or self.function == function
        if not own or attempt is None or attempt.succeeded or attempt.stuck:
            return False
        return key not in attempt.known and not any(key in _keys([choice]) for choice, _, _ in self.refused)

    def beside(self, alone: Attempt) -> Attempt:
        """The attempt behind the one with one mend alone: it may do more with the mends of other breaks."""
        return Attempt(alone.choices, _elsewhere(self._state, alone.choices), 1, enough=False)

    def begun(self, after: State | None, every: list[Choice]) -> None:
        """The mends of the attempt are made, among `every` one that is."""
        attempt = self.attempt
        assert attempt is not None
        attempt.after, attempt.made = after, attempt.choices
        if after is None:
            attempt.stuck = True
            return
        if not attempt.enough:
            return
        removed = sum(not choice.narrows for choice in attempt.choices)
        fewer = self._count(after) <= self._count(self._state) - removed
        attempt.good = [c for c in attempt.choices if stays(self._state, after, c, every, self._permitted)]
        attempt.succeeded = fewer and len(attempt.good) == len(attempt.choices)
        attempt.in_vain = [
            c for c in attempt.choices if c not in attempt.good and in_vain(self._state, after, c, every)
        ]
        if attempt.alone and not attempt.succeeded:
            attempt.waits = not lets_others(self._state, after, attempt.choices[0], every, self._permitted)
            attempt.stuck = attempt.waits

    def went_on(self, after: State | None, more: list[Choice]) -> None:
        """More mends are made, of what the attempt has uncovered."""
        attempt = self.attempt
        assert attempt is not None
        attempt.made = [*attempt.made, *more]
        attempt.stuck = after is None
        if after is not None:
            attempt.succeeded = self._count(after) <= self._count(self._state) - attempt.uncovers

    def _count(self, state: State) -> int:
        return state.count if self.function is None else state.counts[self.function]

    def _attempts(self, choices: list[Choice]) -> Generator[Attempt, None, None]:
        """The attempts, until one has succeeded."""
        state, first = self._state, choices[0].facts.statement
        of_one_statement = [choice for choice in choices if choice.facts.statement is first]
        while len(choices) > 1:
            together = Attempt(choices, _elsewhere(state, choices), len(choices))
            yield together
            good = together.good
            for choice in together.in_vain:
                self._refuse(choice, "does not remove the break", _has_a_statement(state, choice))
            hopeful = [choice for choice in choices if choice not in together.in_vain]
            if not hopeful:
                return
            if 0 < len(good) < len(choices):
                choices = good
            elif len(hopeful) < len(choices):
                choices = hopeful
            else:
                choices = choices[:1]
        choice = choices[0]
        if choice in of_one_statement and len(of_one_statement) > 1:
            yield Attempt(of_one_statement, state.keys() - _keys(of_one_statement), len(of_one_statement), enough=False)
        alone = Attempt(choices, state.keys() - _keys(choices), 1)
        yield alone
        beside = self.beside(alone)
        if alone.after is not None and not (alone.waits or alone.nothing_beside) and beside.known != alone.known:
            yield beside
        why = "would stand in the way of an unsafe mend" if alone.waits else "does not remove the break"
        self._refuse(choice, why, alone.hopeless and _has_a_statement(state, choice))

    def _refuse(self, choice: Choice, why: str, for_good: bool) -> None:
        self.refused.append((choice, f"`{choice.fix.rewrite}` {why}", for_good))


def _keys(choices: list[Choice]) -> set[Key]:
    return {(finding.path, finding.key) for choice in choices for finding in choice.findings}


def _elsewhere(state: State, choices: list[Choice]) -> set[Key]:
    """The findings in other functions than those that some mends are in."""
    here = {choice.function for choice in choices}
    every = ((path, finding) for path in state.sources for finding in state.findings(path))
    return {(path, finding.key) for path, finding in every if (path, finding.function) not in here}


def _has_a_statement(state: State, choice: Choice) -> bool:
    """Are there no other breaks in the statement of a mend, with whose mends it might do more?"""
    own = {finding.key for finding in choice.findings}
    others = (place for place in state.places(choice.finding.path) if place.finding.key not in own)
    return all(place.facts is None or place.facts.statement is not choice.facts.statement for place in others)
