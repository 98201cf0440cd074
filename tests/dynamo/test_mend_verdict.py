"""When a mend counts as verified. Reports are made by hand: nothing is run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.span import Span
from graphmend.dynamo import mend_verdict
from graphmend.dynamo.comparison import Comparison
from graphmend.dynamo.report import Break, Lines, Recompile, Report, TargetReport

PATH = "/project/model.py"
SPAN = Span(4, 4, 4, 20)
FINDING = Finding("GM101", "tensor-branch", "", PATH, SPAN, "Net.forward", "compiled", "certain", "splits", ())
BREAK = Break(PATH, SPAN, "forward", "break", "Data-dependent branching", "GB0170", "", (), ())
BEFORE = TargetReport("Net", "checked", breaks=(BREAK,), executed=Lines({PATH: frozenset(range(1, 9))}))
AFTER = replace(BEFORE, breaks=(), comparison=Comparison(3))


def report(before: TargetReport = BEFORE, after: TargetReport = AFTER, problem: str | None = None) -> Report:
    return Report(PATH, (before,), after=Report(PATH, () if problem else (after,), problem))


def test_nothing_differs() -> None:
    assert mend_verdict.of(report(), FINDING) == ""


@pytest.mark.parametrize(
    ("found", "says"),
    [
        (report(after=replace(AFTER, comparison=Comparison(3, ("value 0 differs",)))), "Net differs: value 0 differs"),
        (report(after=replace(AFTER, comparison=Comparison(3, (), ("size 2",)))), "prints less when compiled"),
        (report(after=replace(AFTER, comparison=None, problem="no inputs found")), "no inputs found"),
        (report(after=replace(AFTER, comparison=None)), "Net could not be compared"),
        (report(after=replace(AFTER, breaks=(BREAK,))), "as often as before"),
        (report(before=replace(BEFORE, executed=Lines({PATH: frozenset({1})}))), "no input that was tried"),
        (report(before=replace(BEFORE, breaks=()), after=replace(AFTER, breaks=(BREAK,))), "more often than before"),
        (report(before=TargetReport("Net", "failed", "Net: no inputs found")), "no inputs found"),
        (report(problem="SyntaxError"), "the mended text: SyntaxError"),
    ],
)
def test_one_line_says_why_it_is_not_verified(found: Report, says: str) -> None:
    assert says in mend_verdict.of(found, FINDING)
    assert "\n" not in mend_verdict.of(found, FINDING)


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        (3, 1, ""),
        (0, 0, ""),
        (2, 2, "compiles anew as often as before"),
        (1, 2, "compiles anew more often than before"),
    ],
)
def test_what_is_compiled_anew_is_compiled_less_often(was: int, now: int, says: str) -> None:
    def again(target: TargetReport, times: int) -> TargetReport:
        found = (Recompile(PATH, 4, "forward", "self.steps == 0", times),) if times else ()
        return replace(target, breaks=(), recompiles=found)

    finding = replace(FINDING, code="GM701", effect="recompiles")
    found = mend_verdict.of(report(again(BEFORE, was), again(AFTER, now)), finding)
    assert found == says or says in found != ""


def test_no_breaks_before_and_none_after() -> None:
    assert mend_verdict.of(report(before=replace(BEFORE, breaks=())), FINDING) == ""


def test_each_target_that_leads_to_the_line_must_be_compared() -> None:
    """That another one compared equal says nothing about a target that fails with the mended text."""
    other = replace(BEFORE, name="Other", breaks=(), executed=Lines({PATH: frozenset({20})}))
    failed = TargetReport("Net", "failed", "Net: the check took too long")
    equal = replace(other, comparison=Comparison(3))
    found = Report(PATH, (BEFORE, other), after=Report(PATH, (failed, equal)))
    assert mend_verdict.of(found, FINDING) == "Net: the check took too long"
    assert not mend_verdict.compared(found, FINDING)
    beside = Report(PATH, (BEFORE, other), after=Report(PATH, (AFTER, replace(failed, name="Other"))))
    assert mend_verdict.of(beside, FINDING) == ""
    assert mend_verdict.compared(beside, FINDING)


def test_breaks_of_a_target_that_fails_afterwards_are_not_fewer_breaks() -> None:
    other = replace(BEFORE, name="Other", executed=Lines({PATH: frozenset({20})}))
    failed = TargetReport("Other", "failed", "Other: the check took too long")
    found = Report(PATH, (BEFORE, other), after=Report(PATH, (replace(AFTER, breaks=(BREAK,)), failed)))
    assert "as often as before" in mend_verdict.of(found, FINDING)
