"""Which mends may be made, and which were made and taken back."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.offers import mend_for_all

if TYPE_CHECKING:
    from graphmend.analysis.check import Result
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding


class Place:
    """One break in a text, with the checks that found it: each knows the values of its own callers. `accept` are the
    kinds of differences that its user accepts.
    """

    def __init__(self, finding: Finding, result: Result, accept: Collection[str] = frozenset()) -> None:
        self._seen = [(finding, result)]
        self._accept = accept

    def add(self, finding: Finding, result: Result) -> None:
        """Another check that found it; one for which it is compiled for certain speaks first."""
        first = finding.region == "compiled" and self.finding.region == "assumed"
        self._seen.insert(0 if first else len(self._seen), (finding, result))

    @property
    def finding(self) -> Finding:
        return self._seen[0][0]

    def recall(self) -> None:
        """Asks for the facts of every check, which has to be before a text changes: they are made on first asking."""
        for _, facts in self._facts:
            if facts is not None:
                facts.recall()

    @property
    def facts(self) -> FunctionFacts | None:
        """What the first check knows of the function around it."""
        return self._facts[0][1]

    @cached_property
    def _facts(self) -> list[tuple[Finding, FunctionFacts | None]]:
        return [(finding, result.facts(finding)) for finding, result in self._seen]

    @cached_property
    def answers(self) -> list[Fix | Refusal]:
        return mend_for_all(self._facts, self._accept)

    @property
    def best(self) -> Fix | None:
        """The first mend that may be made at all."""
        fixes = (answer for answer in self.answers if isinstance(answer, Fix))
        return next((fix for fix in fixes if fix.applicability != "display"), None)


class Permitted:
    """Which mends may be made, and which were made and taken back."""

    def __init__(self, unsafe: bool, prefer_runtime: bool, safe: Permitted | None = None) -> None:
        """`safe` is what was permitted before, where only safe mends were."""
        self.unsafe, self._prefer_runtime = unsafe, prefer_runtime
        self._for_good: dict[tuple[str, str, str, str], str] = safe._for_good if safe is not None else {}
        self._refused = dict(self._for_good)

    def first(self, place: Place) -> tuple[Fix | None, str]:
        """The first mend that may be made, or why there is none: the last one that may not be, else a refusal, else
        that one is only shown.
        """
        withheld: str | None = None
        shown = False
        for answer in place.answers:
            if isinstance(answer, Refusal):
                return None, withheld or answer.reason
            if answer.applicability == "display":
                shown = True
            elif answer.applicability == "unsafe" and not self.unsafe:
                withheld = f"unsafe: {answer.reason}"
            elif answer.silences and (self._prefer_runtime or place.finding.code == "GM201"):
                withheld = "would lose output"
            elif answer.computes_more and self._prefer_runtime:
                withheld = "would compute more than the graph does that keeps the size"
            elif answer.redraws and answer.applicability == "unsafe" and self._prefer_runtime:
                withheld = "would draw other numbers than the compiled program does; `--accept random` permits it"
            elif place.facts is not None and (reason := self._refused.get(_mark(place.finding, answer, place.facts))):
                withheld = reason
            else:
                return answer, ""
        return None, withheld or ("only shown" if shown else "no rewrite is known for this break")

    @cached_property
    def all(self) -> Permitted:
        """The unsafe ones as well."""
        return self if self.unsafe else Permitted(True, self._prefer_runtime, self)

    def refuse(
        self, findings: Iterable[Finding], fix: Fix, facts: FunctionFacts, reason: str, for_good: bool = False
    ) -> None:
        """Never make this mend of these findings again; `for_good` where unsafe mends are permitted, too."""
        for finding in findings:
            mark = _mark(finding, fix, facts)
            self._refused[mark] = reason
            if for_good:
                self._for_good[mark] = reason


def _mark(finding: Finding, fix: Fix, facts: FunctionFacts) -> tuple[str, str, str, str]:
    return finding.path, finding.key, fix.rewrite, ast.dump(facts.statement)
