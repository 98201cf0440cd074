"""Mends made round by round: those that can be made together at once, one alone where they don't all do what they
should. A mend stays only where the analysis of the mended text no longer finds the break.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.check import Result
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.code.text_edits import apply, regions
from graphmend.transforms.fix import Fix, Refusal, TextEdit, Unmendable
from graphmend.transforms.offers import Applied, mend

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

#: steps of a chain: one mend may uncover the next (a kept tensor is then branched on)
_STEPS = 3
#: checks of one text; more are not known to be needed, and a rewrite that never ends would be a bug
_MOST = 500

Wanted = Callable[[Result], Iterable["Finding"]]


class OtherFiles(Protocol):
    """Other files that may be mended along with one: a break in a helper may only be seen from its caller."""

    def source(self, path: str) -> Source | None:
        """The text as it is now, which is also the one that the project reads; None where it is to stay."""

    def replace(self, source: Source) -> None:
        """Takes a mended text. From now on the project reads it."""


class Permitted:
    """Which mends may be applied, and which were applied and taken back."""

    def __init__(self, unsafe: bool, prefer_runtime: bool) -> None:
        self.unsafe, self._prefer_runtime = unsafe, prefer_runtime
        self._refused: dict[tuple[str, str, str, str], str] = {}

    def first(self, finding: Finding, facts: FunctionFacts | None) -> tuple[Fix | None, str]:
        """The first mend that may be applied, or why there is none: the last one that may not be, else a refusal,
        else that one is only shown.
        """
        withheld: str | None = None
        shown = False
        for answer in mend(finding, facts):
            if isinstance(answer, Refusal):
                return None, withheld or answer.reason
            if answer.applicability == "display":
                shown = True
            elif answer.applicability == "unsafe" and not self.unsafe:
                withheld = f"unsafe: {answer.reason}"
            elif answer.silences and (self._prefer_runtime or finding.code == "GM201"):
                withheld = "would lose output"
            elif facts is not None and (reason := self._refused.get(self._mark(finding, answer, facts))):
                withheld = reason
            else:
                return answer, ""
        return None, withheld or ("only shown" if shown else "no rewrite is known for this break")

    def refuse(self, choice: _Choice, reason: str) -> None:
        for one in choice.answers:
            self._refused[self._mark(one.finding, one.fix, choice.facts)] = reason

    @staticmethod
    def _mark(finding: Finding, fix: Fix, facts: FunctionFacts) -> tuple[str, str, str, str]:
        return finding.path, finding.key, fix.rewrite, ast.dump(facts.statement)


@dataclass
class _Choice:
    """A mend that is to be made, and the findings that it answers."""

    answers: list[Applied]
    facts: FunctionFacts
    edits: tuple[TextEdit, ...]

    @property
    def finding(self) -> Finding:
        return self.answers[0].finding

    @property
    def narrows(self) -> bool:
        return self.answers[0].fix.narrows


@dataclass
class _State:
    """The texts at one time, and what is found in them."""

    own: Source
    others: dict[str, Source]
    found: Result

    @property
    def count(self) -> int:
        return len(self.found.findings) + sum(map(len, self.found.elsewhere.values()))

    def findings(self, path: str) -> tuple[Finding, ...]:
        return self.found.findings if path == self.own.path else self.found.elsewhere.get(path, ())

    def every(self) -> set[tuple[str, str]]:
        """The findings by path and key."""
        paths = (self.own.path, *self.found.elsewhere)
        return {(path, finding.key) for path in paths for finding in self.findings(path)}

    def source(self, path: str) -> Source:
        return self.own if path == self.own.path else self.others[path]


class Run:
    """A text, and others with it, on the way to the fixed point."""

    def __init__(
        self,
        source: Source,
        look: Callable[[Source, bool], Result],
        others: OtherFiles | None,
        wanted: Wanted | None,
    ) -> None:
        self._look, self._others, self._wanted = look, others, wanted
        self.applied: list[Applied] = []
        self._sources: dict[str, Source | None] = {}
        """Other files as they are now."""
        self._checks, self._stale = 0, False
        self.state = self._state(source)

    def step(self, permitted: Permitted) -> bool:
        """Makes mends that can be made together, and keeps those that remove their breaks; whether there were any to
        try.
        """
        state = self.state
        choices = self._choose(state, permitted)
        if not choices or self._checks > _MOST:
            return False
        while len(choices) > 1:
            after = self._apply(state, choices)
            good = [c for c in choices if after is not None and self._stays(state, after, c, choices, permitted)]
            removed = sum(not c.narrows for c in choices)
            if after is not None and len(good) == len(choices) and after.count <= state.count - removed:
                return self._keep(after, choices)
            self._revert(state)
            choices = good if 0 < len(good) < len(choices) else choices[:1]
        self._alone(state, choices[0], permitted)
        return True

    def left(self, permitted: Permitted) -> list[tuple[Finding, str]]:
        """The findings of the file that no permitted mend answers, and why."""
        found = self.state.found
        return [(finding, permitted.first(finding, found.facts(finding))[1]) for finding in self._own(self.state)]

    def _alone(self, state: _State, choice: _Choice, permitted: Permitted) -> None:
        """One mend; where it only moves the break, with the mends of what it uncovers."""
        own = {(choice.finding.path, answer.finding.key) for answer in choice.answers}
        known, made = state.every() - own, [choice]
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
                self._keep(after, made)
                return
        self._revert(state)
        name = choice.answers[0].fix.rewrite
        reason = (
            f"`{name}` would stand in the way of an unsafe mend" if waits else f"`{name}` does not remove the break"
        )
        permitted.refuse(choice, reason)

    def _keep(self, after: _State, choices: list[_Choice]) -> bool:
        self.state = after
        self.applied += [answer for choice in choices for answer in choice.answers]
        return True

    # What may be mended

    def _own(self, state: _State) -> list[Finding]:
        findings = state.found.findings
        return [*(findings if self._wanted is None else self._wanted(state.found))]

    def _choose(self, state: _State, permitted: Permitted, known: set[tuple[str, str]] | None = None) -> list[_Choice]:
        """Mends that do not touch one another; only those of findings that are not `known`, where that is given."""
        chosen: list[_Choice] = []
        for path in (state.own.path, *sorted(state.others)):
            findings = self._own(state) if path == state.own.path else state.findings(path)
            edits: list[TextEdit] = []
            for finding in findings:
                if known is not None and (path, finding.key) in known:
                    continue
                facts = state.found.facts(finding)
                fix, _ = permitted.first(finding, facts)
                if fix is None or facts is None:
                    continue
                choice = _Choice([Applied(finding, fix, state.source(path).text)], facts, ())
                try:
                    choice.edits = fix.edits()
                except Unmendable as error:
                    permitted.refuse(choice, str(error))
                    continue
                here = (c for c in chosen if c.finding.path == path and c.edits == choice.edits)
                if (same := next(here, None)) is not None:  # one for several findings; some of them may live on in it
                    same.answers.append(choice.answers[0]._replace(fix=same.answers[0].fix))
                elif all(_apart(e, other) for e in choice.edits for other in edits):
                    edits += [e for e in choice.edits if e not in edits]
                    chosen.append(choice)
        return chosen

    # What a mend has done

    def _apply(self, state: _State, choices: list[_Choice]) -> _State | None:
        """The state after some mends; None where a text would not parse."""
        own, changed = state.own, {}
        for path in dict.fromkeys(choice.finding.path for choice in choices):
            before = state.source(path)
            after = Source(apply(before.text, _all_edits(choices, path), before), path)
            if after.tree is None:
                return None
            if path == state.own.path:
                own = after
            else:
                changed[path] = after
        self._replace(changed)
        return self._state(own)

    def _revert(self, state: _State) -> None:
        self._replace({path: s for path, s in state.others.items() if self._sources.get(path) is not s})

    def _replace(self, sources: dict[str, Source]) -> None:
        for path, source in sources.items():
            assert self._others is not None
            self._sources[path] = source
            self._others.replace(source)
            self._stale = True

    def _state(self, own: Source) -> _State:
        self._checks += 1
        found, self._stale = self._look(own, self._stale), False
        for path in found.elsewhere if self._others is not None else ():
            if path not in self._sources:
                self._sources[path] = self._others.source(path) if self._others is not None else None
        here = {path: source for path in found.elsewhere if (source := self._sources.get(path)) is not None}
        return _State(own, here, found)

    def _stays(
        self, state: _State, after: _State, choice: _Choice, choices: list[_Choice], permitted: Permitted
    ) -> bool:
        """Is a break gone with a mend, or narrowed, with no new one in its place, and no other mend prevented?"""
        if choice.narrows:
            return self._lets_others(state, after, choice, choices, permitted)
        path, code = choice.finding.path, choice.finding.code
        old, new = regions(state.source(path), choice.facts, choice.edits, _all_edits(choices, path))
        text = after.source(path) if path == after.own.path or path in after.others else None
        if text is None:
            return path not in after.found.elsewhere and self._lets_others(state, after, choice, choices, permitted)
        before = [f.code for f in state.findings(path) if _inside(f, state.source(path), old)]
        behind = [f.code for f in after.findings(path) if _inside(f, text, new)]
        gone = behind.count(code) < before.count(code) and len(behind) < len(before)
        return gone and self._lets_others(state, after, choice, choices, permitted)

    def _lets_others(
        self, state: _State, after: _State, choice: _Choice, choices: list[_Choice], permitted: Permitted
    ) -> bool:
        """Can what stands around a safe mend still be mended as it could before, where that is unsafe?"""
        if permitted.unsafe:
            return True
        path, inner = choice.finding.path, choice.facts.statement
        answered = {answer.finding.key for c in choices for answer in c.answers}
        for finding in state.findings(path):
            facts = state.found.facts(finding) if finding.key not in answered else None
            if facts is None or not _around(facts.statement, inner) or permitted.first(finding, facts)[0] is not None:
                continue
            fix = _first_fix(finding, facts)
            now = next((f for f in after.findings(path) if f.key == finding.key), None)
            if fix is None or now is None:
                continue
            again = _first_fix(now, after.found.facts(now))
            if again is None or again.rewrite != fix.rewrite:
                return False
        return True


def _first_fix(finding: Finding, facts: FunctionFacts | None) -> Fix | None:
    answers = (a for a in mend(finding, facts) if isinstance(a, Fix))
    return next((fix for fix in answers if fix.applicability != "display"), None)


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
