"""Suppression comments: what they cover, and GM001 for those that cover nothing."""

from __future__ import annotations

import pytest

from graphmend.analysis.finding import Finding
from graphmend.analysis.findings.suppressions import apply, suppressions
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span


def finding(line: int, code: str = "GM101") -> Finding:
    """A finding that begins on a line."""
    return Finding(code, "n", "m", "f.py", Span(line, 4, line, 8), "f", "compiled", "certain", "splits", ())


def codes(text: str, *findings: Finding, settings: Settings | None = None) -> list[str]:
    return [f"{f.code}:{f.span.line}" for f in apply(Source(text), findings, settings or Settings())]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("if x:  # graphmend: ignore\n    pass\n", []),
        ("if x:  # graphmend: ignore[GM101] because\n    pass\n", []),
        ("if x:  # graphmend: ignore[GM1]\n    pass\n", []),
        ("if x:  #graphmend:ignore[GM201,GM101]\n    pass\n", ["GM001:1"]),
        ("if x:  # graphmend: ignore[GM201]\n    pass\n", ["GM101:1", "GM001:1"]),
        ("if x:  # noqa: E501  # graphmend: ignore\n    pass\n", []),
        ("if x:\n    pass  # graphmend: ignore\n", ["GM101:1", "GM001:2"]),
        ("if x:\n    pass\n# graphmend: ignore-file\n", []),
        ("if x:\n    pass\n# graphmend: ignore-file[GM101] generated\n", []),
        ("if x:\n    pass\n    # graphmend: ignore-file\n", ["GM101:1"]),
        ("if x:\n    pass\n# graphmend: ignored\n", ["GM101:1"]),
        ("s = '# graphmend: ignore'\nif x: pass\n", ["GM101:1"]),
    ],
)
def test_one_finding_on_line_one(text: str, left: list[str]) -> None:
    assert sorted(codes(text, finding(1))) == sorted(left)


def test_comment_behind_a_statement_of_several_lines_covers_all_of_it() -> None:
    text = "y = (\n    a\n    if x\n    else b\n)  # graphmend: ignore[GM101]\n"
    assert codes(text, finding(1)) == []
    assert codes(text, finding(3)) == []


def test_comment_on_a_line_of_its_own_covers_no_statement() -> None:
    assert codes("# graphmend: ignore\nif x:\n    pass\n", finding(2)) == ["GM001:1", "GM101:2"]


def test_comment_inside_a_statement_covers_its_line_only() -> None:
    text = "y = (\n    a  # graphmend: ignore[GM101]\n    if x\n    else b\n)\n"
    assert codes(text, finding(2)) == []
    assert codes(text, finding(3)) == ["GM001:2", "GM101:3"]


def test_header_of_a_compound_statement_does_not_cover_its_body() -> None:
    text = "if x:  # graphmend: ignore\n    if y: pass\n"
    assert codes(text, finding(1), finding(2)) == ["GM101:2"]


@pytest.mark.parametrize(
    ("code", "settings"),
    [
        ("GM201", Settings(select=("GM1",))),
        ("GM201", Settings(ignore=("GM2",))),
        ("GM2", Settings(ignore=("GM201",))),
        ("GM901", Settings()),
        ("GM101", Settings(ignore=("GM001",))),
    ],
)
def test_unused_is_said_only_where_it_can_be_known(code: str, settings: Settings) -> None:
    assert codes(f"pass  # graphmend: ignore[{code}]\n", settings=settings) == []


@pytest.mark.parametrize("code", ["gm101", "GM999", "GM199", "GM1011"])
def test_codes_that_no_rule_has_are_named(code: str) -> None:
    (remark,) = apply(Source(f"pass  # graphmend: ignore[GM901, {code}]\n"), (), Settings())
    assert remark.message == f"unused suppression: no rule has the code {code}"


def test_a_remark_covers_its_comment() -> None:
    (remark,) = apply(Source("pass  # graphmend: ignore[gm101]\n"), (), Settings())
    assert remark.span == Span(1, 6, 1, 32)


def test_gm001_can_be_taken_back_itself() -> None:
    assert codes("pass  # graphmend: ignore[GM101, GM001]\n") == []
    assert codes("pass  # graphmend: ignore[GM101]\n# graphmend: ignore-file[GM001]\n") == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_of_every_kind(end: str) -> None:
    text = end.join(["pass", "if x:  # graphmend: ignore", "    pass", ""])
    assert codes(text, finding(2)) == []


def test_text_that_is_not_python_yet_keeps_the_comments_before() -> None:
    assert suppressions(Source("if x:  # graphmend: ignore\n    pass\ny = (\n"))[0].lines == (1, 1)


def test_reason_and_codes_are_kept() -> None:
    (comment,) = suppressions(Source("x  # graphmend: ignore[GM101,  GM2] too small to matter \n"))
    assert (comment.codes, comment.reason) == (("GM101", "GM2"), "too small to matter")
