"""Findings and a report, merged. Needs no torch: reports are made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.dynamo.merge import Merged, merge
from graphmend.dynamo.report import Break, Frame, Lines, Report, TargetReport

PATH = "/project/model.py"
TEXT = """\
def forward(self, x):
    y = (x
         .sum()
         .item())
    if (x > 0 and
            y):
        print("a")
    for i in range(3):
        print("b")
    return x
"""


def finding(line: int, column: int = 4) -> Finding:
    span = Span(line, column, line, column + 1)
    return Finding("GM101", "tensor-branch", "", PATH, span, "forward", "compiled", "certain", "splits", ())


def broken(line: int, column: int = 4, **more: Any) -> Break:
    span = Span(line, column, line, column + 1)
    values: dict[str, Any] = {
        "path": PATH,
        "span": span,
        "function": "forward",
        "kind": "break",
        "gb_type": "Data-dependent branching",
        "gb_id": "GB0170",
        "reason": "Detected data-dependent branching.",
        "hints": ("Use torch.where.",),
        "stack": (Frame(PATH, "forward", span),),
    }
    return Break(**{**values, **more})


def merged(findings: list[Finding], breaks: list[Break], traced: set[int], executed: set[int]) -> Merged:
    target = TargetReport(
        "Net",
        "checked",
        breaks=tuple(breaks),
        traced=Lines({PATH: frozenset(traced)}),
        executed=Lines({PATH: frozenset(executed)}),
    )
    return merge(Source(TEXT, PATH), findings, Report(PATH, (target,)))


@pytest.mark.parametrize("line", [2, 3, 4])
def test_a_break_anywhere_in_the_statement_confirms(line: int) -> None:
    found = merged([finding(2)], [broken(line, 9)], {2, 3, 4}, {2, 3, 4})
    (verdict,) = found.verdicts
    assert verdict.state == "confirmed"
    assert "GB0170" in verdict.reason
    assert found.only_dynamo == ()


def test_the_body_of_a_branch_is_not_the_branch() -> None:
    found = merged([finding(5)], [broken(7, 8)], {5, 6, 7}, set())
    assert [v.state for v in found.verdicts] == ["not seen"]
    assert [(f.code, f.span.line, f.function) for f in found.only_dynamo] == [("GM901", 7, "forward")]


def test_a_condition_over_two_lines_is_one_statement() -> None:
    assert merged([finding(5)], [broken(6, 12)], {5}, set()).verdicts[0].state == "confirmed"


def test_not_reached_is_not_the_same_as_not_seen() -> None:
    states = [v.state for v in merged([finding(2), finding(7, 8), finding(9, 8)], [], {2}, {2, 9}).verdicts]
    assert states == ["not seen", "not reached", "runs eagerly"]


def test_reasons_tell_why_a_statement_was_not_reached() -> None:
    never, eager = merged([finding(7, 8), finding(9, 8)], [], {2}, {9}).verdicts
    assert never.reason != eager.reason


def test_what_runs_eagerly_names_the_line_that_took_its_frame() -> None:
    lost = broken(2, 9, kind="skip")
    confirmed, eager = merged([finding(2), finding(9, 8)], [lost], {2}, {2, 9}).verdicts
    assert confirmed.state == "confirmed"
    assert (eager.state, eager.brief) == ("runs eagerly", "runs eagerly because of line 2")
    assert "line 2 takes its whole frame out of the graph (GB0170" in eager.reason


def test_what_runs_eagerly_names_the_call_that_breaks_and_took_its_frame() -> None:
    inner = Span(12, 4, 12, 5)
    stack = (Frame(PATH, "forward", Span(2, 4, 2, 5)), Frame(PATH, "inner", inner))
    lost = broken(12, kind="skip", function="inner", stack=stack)
    (eager,) = merged([finding(9, 8)], [lost], {3}, {2, 9, 12}).verdicts
    assert eager.state == "runs eagerly"
    assert eager.reason.startswith("line 2 calls inner, which breaks and takes it out of the graph (GB0170")


def test_a_split_or_another_function_is_not_why_a_line_runs_eagerly() -> None:
    elsewhere = broken(12, kind="skip")
    for item in (broken(2, 9), elsewhere):
        (eager,) = merged([finding(9, 8)], [item], {2}, {2, 9}).verdicts
        assert (eager.state, eager.brief) == ("runs eagerly", "runs eagerly")


@pytest.mark.parametrize(
    ("kind", "code", "effect"),
    [("break", "GM901", "splits"), ("skip", "GM902", "skips-frame"), ("raises", "GM903", "raises")],
)
def test_what_only_dynamo_saw_becomes_a_finding(kind: str, code: str, effect: str) -> None:
    (found,) = merged([], [broken(9, 8, kind=kind)], {9}, set()).only_dynamo
    assert (found.code, found.effect, found.gb_id) == (code, effect, "GB0170")
    assert found.advice == "Use torch.where."
    assert found.evidence == ("forward at model.py:9",)


def test_breaks_elsewhere_are_left_out() -> None:
    found = merged([], [broken(9, path="/project/other.py"), broken(9, in_project=False)], set(), set())
    assert found.only_dynamo == ()


def test_one_finding_for_one_place() -> None:
    found = merged([], [broken(9, 8), broken(9, 8, gb_type="another", gb_id="GB0001")], set(), set())
    assert len(found.only_dynamo) == 1


def test_spans_stay_inside_the_text() -> None:
    (found,) = merged([], [broken(10, span=Span(10, 2, 99, 400))], set(), set()).only_dynamo
    assert found.span == Span(10, 2, 11, 0)
