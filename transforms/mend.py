"""Which mends a finding has, and how a whole file is mended: round by round, until no mend is left that may be
applied.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from graphmend.analysis.check import Result, check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.catalogue import rewrites_for
from graphmend.transforms.code.text_edits import apply
from graphmend.transforms.fix import Fix, Refusal, TextEdit, Unmendable

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings

#: one mend may uncover the next (a kept tensor is then branched on); chains longer than this are not known
_ROUNDS = 10
#: rewrites that are right for every kind of value
_INDIFFERENT = ("emit", "select")
#: rounds that may pass without fewer findings than before: a mend may take two steps
_IDLE = 2


class Applied(NamedTuple):
    """A mend that was applied, and the finding that it answers."""

    finding: Finding
    fix: Fix
    text: str
    """The text in which the finding stands: that of its round."""


class OtherFiles(Protocol):
    """Other files that may be mended along with one: a break in a helper may only be seen from its caller."""

    def source(self, path: str) -> Source | None:
        """The text as it is now, which is also the one that the project reads; None where it is to stay."""

    def replace(self, source: Source) -> None:
        """Takes a mended text. From now on the project reads it."""


@dataclass
class Mended:
    """A text after mending."""

    source: Source
    """The mended text; the one that came in where nothing was applied."""
    applied: list[Applied] = field(default_factory=list)
    """In this file and in others; `finding.path` says where."""
    left: list[tuple[Finding, str]] = field(default_factory=list)
    """Findings of the last round in this file that no permitted mend answers, and why."""
    looked_at: str = ""
    """The text of the last round: those findings stand in it."""

    @property
    def changed(self) -> bool:
        return bool(self.applied)

    @property
    def mends(self) -> int:
        """How many mends were made: one may answer several findings."""
        made: list[tuple[Fix, str]] = []
        for one in self.applied:
            if (one.fix, one.text) not in made:
                made.append((one.fix, one.text))
        return len(made)


def mend(finding: Finding, facts: FunctionFacts | None) -> list[Fix | Refusal]:
    """Every mend of a finding, best first, then every refusal. `facts` are those of its function, if it is in one.

    A mend that keeps all output comes before one that silences it, and where both keep it the safe one first:
    that is the order of the catalogue, made stable by what each rewrite can prove here.
    """
    if facts is None:
        return [Refusal("", "it stands in no function's body, which a mend would rewrite")]
    answers = [rewrite(finding, facts) for rewrite in rewrites_for(finding)]
    fixes = [_as_certain_as(finding, a) for a in answers if isinstance(a, Fix)]
    refusals = [a for a in answers if isinstance(a, Refusal)]
    keeping = [f for f in fixes if not f.silences]
    rank = {"safe": 0, "unsafe": 1, "display": 2}
    keeping.sort(key=lambda f: rank[f.applicability])
    silencing = sorted((f for f in fixes if f.silences), key=lambda f: rank[f.applicability])
    return [*keeping, *silencing, *refusals]


def _as_certain_as(finding: Finding, fix: Fix) -> Fix:
    """A mend of something that is only likely a tensor is not safe, unless it keeps the statement as it is."""
    if finding.certainty == "certain" or fix.applicability != "safe" or fix.rewrite in _INDIFFERENT:
        return fix
    return replace(fix, applicability="unsafe", reason="what it works on is likely, but not certainly, a tensor")


def mend_all(
    source: Source,
    project: Project | None = None,
    settings: Settings | None = None,
    *,
    unsafe: bool,
    prefer_runtime: bool = False,
    others: OtherFiles | None = None,
) -> Mended:
    """`source` with every permitted mend applied: a fixed point, reached in a few rounds.

    Mends that overlap wait for the next round. A mend that silences output is permitted only with `unsafe`;
    with `prefer_runtime` it is not permitted at all, as there the runtime keeps every line. What a
    program prints is never silenced here. What is found in `others` is mended there.
    """
    result = Mended(source)
    permitted = _Permitted(unsafe, prefer_runtime)
    fewest, idle = sys.maxsize, 0
    for _ in range(_ROUNDS):
        if result.source.tree is None:
            break
        found = check(result.source, project, settings)
        count = len(found.findings) + sum(map(len, found.elsewhere.values()))
        idle = 0 if count < fewest else idle + 1
        fewest = min(fewest, count)
        if idle > _IDLE:
            break
        elsewhere = [MendRound(found, here, permitted) for here in _others(found, others)]
        own = MendRound(found, result.source, permitted)
        result.left, result.looked_at = own.left, result.source.text
        after = own.text()
        for round_ in elsewhere:
            if others is not None and (text := round_.text()) is not None:
                others.replace(text)
                result.applied += round_.chosen
        if after is not None:
            result.source = after
            result.applied += own.chosen
        elif not any(round_.chosen for round_ in elsewhere):
            break
    return result


def _others(found: Result, others: OtherFiles | None) -> list[Source]:
    sources = [others.source(path) for path in sorted(found.elsewhere)] if others is not None else []
    return [source for source in sources if source is not None]


class _Permitted:
    """Which mends may be applied, and which were tried already."""

    def __init__(self, unsafe: bool, prefer_runtime: bool) -> None:
        self._unsafe, self._prefer_runtime = unsafe, prefer_runtime
        self._tried: set[tuple[str, str, str, str]] = set()

    def first(self, finding: Finding, facts: FunctionFacts | None) -> tuple[Fix | None, str]:
        fix, reason = _first(finding, facts, self._unsafe, self._prefer_runtime)
        if fix is not None and facts is not None and self._mark(finding, fix, facts) in self._tried:
            return None, f"`{fix.rewrite}` was applied and did not remove the break"
        return fix, reason

    def tried(self, finding: Finding, fix: Fix, facts: FunctionFacts) -> None:
        self._tried.add(self._mark(finding, fix, facts))

    @staticmethod
    def _mark(finding: Finding, fix: Fix, facts: FunctionFacts) -> tuple[str, str, str, str]:
        return finding.path, finding.key, fix.rewrite, ast.dump(facts.statement)


class MendRound:
    """The mends of one file that can be applied together."""

    def __init__(self, found: Result, source: Source, permitted: _Permitted) -> None:
        self._source = source
        self._edits: list[TextEdit] = []
        self.chosen: list[Applied] = []
        self.left: list[tuple[Finding, str]] = []
        findings = found.findings if source.path == found.source.path else found.elsewhere[source.path]
        for finding in findings:
            facts = found.facts(finding)
            fix, reason = permitted.first(finding, facts)
            if fix is None or facts is None:
                self.left.append((finding, reason))
                continue
            if any(fix == one.fix for one in self.chosen):  # one for several findings; some of them may live on in it
                self.chosen.append(Applied(finding, fix, self._source.text))
                continue
            try:
                new = fix.edits()
            except Unmendable as error:
                self.left.append((finding, str(error)))
                continue
            if all(_apart(e, other) for e in new for other in self._edits):
                permitted.tried(finding, fix, facts)
                self._edits += [e for e in new if e not in self._edits]
                self.chosen.append(Applied(finding, fix, self._source.text))

    def text(self) -> Source | None:
        """The mended text; None where there is none."""
        if not self.chosen:
            return None
        after = Source(apply(self._source.text, self._edits, self._source), self._source.path)
        if after.tree is None:
            self.chosen = []
            return None
        return after


def _first(finding: Finding, facts: FunctionFacts | None, unsafe: bool, prefer_runtime: bool) -> tuple[Fix | None, str]:
    """The first mend that may be applied, or why there is none: the last one that may not be, else a refusal, else that
    one is only shown."""
    withheld: str | None = None
    shown = False
    for answer in mend(finding, facts):
        if isinstance(answer, Refusal):
            return None, withheld or answer.reason
        if answer.applicability == "display":
            shown = True
        elif answer.applicability == "unsafe" and not unsafe:
            withheld = f"unsafe: {answer.reason}"
        elif answer.silences and (prefer_runtime or finding.code == "GM201"):
            withheld = "would lose output"
        else:
            return answer, ""
    return None, withheld or ("only shown" if shown else "no rewrite is known for this break")


def _apart(a: TextEdit, b: TextEdit) -> bool:
    """Do two edits not touch each other? Equal ones (the same import added twice) count as one."""
    return a == b or a.span[2:] < b.span[:2] or b.span[2:] < a.span[:2]
