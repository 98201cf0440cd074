"""Which mends a finding has, and how a whole file is mended: round by round, until no mend is left that may be
applied.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.check import check
from graphmend.analysis.source import Source
from graphmend.transforms.catalogue import rewrites_for
from graphmend.transforms.edits import apply
from graphmend.transforms.fix import Fix, Refusal, TextEdit, Unmendable

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.project import Project
    from graphmend.analysis.settings import Settings

#: one mend may uncover the next (a kept tensor is then branched on); chains longer than this are not known
_ROUNDS = 10
#: rewrites that are right for every kind of value
_INDIFFERENT = ("emit", "is_compiling")
#: rounds that may pass without fewer findings than before: a mend may take two steps
_IDLE = 2


class Applied(NamedTuple):
    """A mend that was applied, and the finding that it answers (positions are those of its round)."""

    finding: Finding
    fix: Fix


@dataclass
class Mended:
    """A text after mending."""

    source: Source
    """The mended text; the one that came in where nothing was applied."""
    applied: list[Applied] = field(default_factory=list)
    left: list[tuple[Finding, str]] = field(default_factory=list)
    """Findings of the last round that no permitted mend answers, and why."""

    @property
    def changed(self) -> bool:
        return bool(self.applied)


def mend(finding: Finding, facts: FunctionFacts) -> list[Fix | Refusal]:
    """Every mend of a finding, best first, then every refusal.

    A mend that keeps all output comes before one that silences it, and where both keep it the safe one first:
    that is the order of the catalogue, made stable by what each rewrite can prove here.
    """
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
) -> Mended:
    """`source` with every permitted mend applied: a fixed point, reached in a few rounds.

    Mends that overlap wait for the next round. A mend that silences output is permitted only with `unsafe`;
    with `prefer_runtime` it is not permitted at all, as there the runtime keeps every line. What a
    program prints is never silenced here.
    """
    result = Mended(source)
    tried: set[tuple[str, str, str]] = set()
    fewest, idle = sys.maxsize, 0
    for _ in range(_ROUNDS):
        if result.source.tree is None:
            break
        round_ = check(result.source, project, settings)
        idle = 0 if len(round_.findings) < fewest else idle + 1
        fewest = min(fewest, len(round_.findings))
        if idle > _IDLE:
            break
        chosen: list[Applied] = []
        edits: list[TextEdit] = []
        left: list[tuple[Finding, str]] = []
        for finding in round_.findings:
            facts = round_.facts(finding)
            fix, reason = _first(finding, facts, unsafe, prefer_runtime)
            if fix is None:
                left.append((finding, reason))
                continue
            mark = (finding.key, fix.rewrite, ast.dump(facts.statement))
            if mark in tried:
                left.append((finding, f"`{fix.rewrite}` was applied and did not remove the break"))
                continue
            try:
                new = fix.edits()
            except Unmendable as error:
                left.append((finding, str(error)))
                continue
            if all(_apart(e, other) for e in new for other in edits):
                tried.add(mark)
                edits += [e for e in new if e not in edits]
                chosen.append(Applied(finding, fix))
        after = Source(apply(result.source.text, edits, result.source), source.path)
        result.left = left
        if not chosen or after.tree is None:
            break
        result.source = after
        result.applied += chosen
    return result


def _first(finding: Finding, facts: FunctionFacts, unsafe: bool, prefer_runtime: bool) -> tuple[Fix | None, str]:
    """The first mend that may be applied, or why there is none."""
    reason = "no rewrite is known for this break"
    for answer in mend(finding, facts):
        if isinstance(answer, Refusal):
            return None, answer.reason if reason.startswith("no rewrite") else reason
        if answer.applicability == "display" or (answer.applicability == "unsafe" and not unsafe):
            reason = f"unsafe: {answer.reason}" if answer.applicability == "unsafe" else "only shown"
        elif answer.silences and (prefer_runtime or finding.code == "GM201"):
            reason = "would lose output"
        else:
            return answer, ""
    return None, reason


def _apart(a: TextEdit, b: TextEdit) -> bool:
    """Do two edits not touch each other? Equal ones (the same import added twice) count as one."""
    return a == b or a.span[2:] < b.span[:2] or b.span[2:] < a.span[:2]
