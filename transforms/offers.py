"""Which mends a finding has, best first."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.catalogue import rewrites_for
from graphmend.transforms.fix import RANK, Applicability, Difference, Fix, Refusal, joined_reason, offered_by_both
from graphmend.transforms.torch_versions import unmeasured

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding


class Applied(NamedTuple):
    """A mend that was applied, and the finding that it answers."""

    finding: Finding
    fix: Fix
    text: str
    """The text in which the finding stands: that of its round."""


def distinct(applied: Iterable[Applied]) -> list[Applied]:
    """One for each mend that was made: it may answer several findings."""
    return list({(one.finding.path, one.fix, one.text): one for one in applied}.values())


def mend(finding: Finding, facts: FunctionFacts | None, accept: Collection[str] = frozenset()) -> list[Fix | Refusal]:
    """Every mend of a finding, best first, then every refusal. `facts` are those of its function, if it is in one.
    `accept` are the kinds of differences with which a mend counts as safe.

    A mend that keeps all output comes before one that silences it, and where both keep it the safe one first:
    that is the order of the catalogue, made stable by what each rewrite can prove here. What only prepares for others
    comes where nothing else keeps the output, in the order of the catalogue: one form leads to more than another.
    """
    if facts is None:
        return [Refusal("", "it stands in no function's body, which a mend would rewrite")]
    answers = _answers(finding, facts)
    fixes = [_accepted(fix, accept) for fix in _of_any_caller(finding, facts, answers)]
    refusals = [a for a in answers if isinstance(a, Refusal)]
    keeping = [f for f in fixes if not f.silences]
    keeping.sort(key=lambda f: (f.prepares, not f.prepares and RANK[f.applicability]))
    silencing = sorted((f for f in fixes if f.silences), key=lambda f: RANK[f.applicability])
    return [*keeping, *silencing, *refusals]


def _answers(finding: Finding, facts: FunctionFacts) -> list[Fix | Refusal | None]:
    return [_measured(rewrite(finding, facts), facts.torch_version) for rewrite in rewrites_for(finding)]


def _of_any_caller(finding: Finding, facts: FunctionFacts, answers: Iterable[Fix | Refusal | None]) -> list[Fix]:
    """The mends among answers; one that not every caller is promised differs in that too."""
    fixes = [answer for answer in answers if isinstance(answer, Fix)]
    promised = {*fixes}
    for others in facts.of_any_callers if fixes else ():
        if not facts.are_those_of(others):
            asked = replace(finding, certainty="likely") if _is_doubted(facts, others) else finding
            there = {(fix.rewrite, fix.title): fix for fix in _answers(asked, others) if isinstance(fix, Fix)}
            promised = {fix for fix in promised if _promises(there.get((fix.rewrite, fix.title)), fix)}
    return [fix if fix in promised else _for_calls(fix) for fix in fixes]


def _is_doubted(facts: FunctionFacts, others: FunctionFacts) -> bool:
    """Is something in the finding's statement only likely a tensor for other callers?"""
    nodes = [n for n in nodes_in(facts.statement) if isinstance(n, ast.expr)]
    values = ((facts.value(n), others.value(n)) for n in nodes)
    return any(isinstance(b, Tensor) and b.likely and not (isinstance(a, Tensor) and a.likely) for a, b in values)


def _promises(other: Fix | None, fix: Fix) -> bool:
    """Does a mend promise as much as another one?"""
    if other is None or RANK[other.applicability] > RANK[fix.applicability]:
        return False
    return set(other.differences) <= set(fix.differences)


def _for_calls(fix: Fix) -> Fix:
    difference = Difference("callers", "it takes for granted what the calls in sight pass, and not what others might")
    reason = difference.says if fix.applicability == "safe" else f"{fix.reason}; {difference.says}"
    weaker: Applicability = "unsafe" if fix.applicability == "safe" else fix.applicability
    return replace(fix, applicability=weaker, reason=reason, differences=(*fix.differences, difference))


def _measured(answer: Fix | Refusal | None, version: str) -> Fix | Refusal | None:
    """A mend, or that it is refused because nobody measured it with this torch."""
    if not isinstance(answer, Fix) or (reason := unmeasured(answer.rewrite, version)) is None:
        return answer
    return Refusal(answer.rewrite, reason)


def _accepted(fix: Fix, accept: Collection[str]) -> Fix:
    """A mend as a user sees it who accepts some kinds of differences. What silences output is never safe."""
    known = {difference.kind for difference in fix.differences}
    if fix.applicability != "unsafe" or fix.silences or not known or not known.issubset(accept):
        return fix
    return replace(fix, applicability="safe")


def mend_for_all(
    seen: Iterable[tuple[Finding, FunctionFacts | None]], accept: Collection[str] = frozenset()
) -> list[Fix | Refusal]:
    """The mends of one place that several checks reach, each with the values of its own callers: those that every
    check offers, as the one that promises least words them, then every refusal.
    """
    first, *others = (mend(finding, facts, accept) for finding, facts in seen)
    fixes = [answer for answer in first if isinstance(answer, Fix)]
    for answers in others:
        there = (answer for answer in answers if isinstance(answer, Fix))
        fixes = [_joined(*pair) for pair in offered_by_both(fixes, there, lambda fix: (fix.rewrite, fix.title))]
    refusals = (answer for answers in (first, *others) for answer in answers if isinstance(answer, Refusal))
    return [*fixes, *dict.fromkeys(refusals)]


def _joined(weaker: Fix, stronger: Fix) -> Fix:
    differences = tuple(dict.fromkeys((*weaker.differences, *stronger.differences)))
    return replace(weaker, reason=joined_reason(weaker, stronger), differences=differences)
