"""When a mend counts as verified. Reports are made by hand: nothing is run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphmend.analysis.finding import Finding, Span
from graphmend.dynamo.report import Break, Comparison, Lines, Report, TargetReport
from graphmend.server import verdict

PATH = "/project/model.py"
SPAN = Span(4, 4, 4, 20)
FINDING = Finding("GM101", "tensor-branch", "", PATH, SPAN, "Net.forward", "compiled", "certain", "splits", ())
BREAK = Break(PATH, SPAN, "forward", "break", "Data-dependent branching", "GB0170", "", (), ())
BEFORE = TargetReport("Net", "checked", breaks=(BREAK,), executed=Lines({PATH: frozenset(range(1, 9))}))
AFTER = replace(BEFORE, breaks=(), comparison=Comparison(3))


def report(before: TargetReport = BEFORE, after: TargetReport = AFTER, problem: str | None = None) -> Report:
    return Report(PATH, (before,), after=Report(PATH, () if problem else (after,), problem))


def test_nothing_differs() -> None:
    assert verdict.of(report(), FINDING) == ""


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (report(after=replace(AFTER, comparison=Comparison(3, ("value 0 differs",)))), "Net differs: value 0 differs"),
        (report(after=replace(AFTER, comparison=Comparison(3, (), ("size 2",)))), "prints less when compiled"),
        (report(after=replace(AFTER, comparison=None, problem="no inputs found")), "no inputs found"),
        (report(after=replace(AFTER, comparison=None)), "nothing could be compared"),
        (report(after=replace(AFTER, breaks=(BREAK,))), "as often as before"),
        (report(before=replace(BEFORE, executed=Lines({PATH: frozenset({1})}))), "no input that was tried"),
        (report(problem="SyntaxError"), "the mended text: SyntaxError"),
    ],
)
def test_one_line_says_why_it_is_not_verified(found: Report, says: str) -> None:
    assert says in verdict.of(found, FINDING)
    assert "\n" not in verdict.of(found, FINDING)
