"""Positions in texts: every encoding that editors use, every line end, against counting it out."""

from __future__ import annotations

import ast
import io
import tokenize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graphmend.analysis.syntax.source import Encoding, LineIndex, Source
from graphmend.analysis.syntax.span import Span

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
UNIT = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
CODEC = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}

texts = st.text(st.sampled_from("ab \t\u00e9\u4e2d\U0001f642\u0301\ufeff\u2028\f\v\x85\n\r")) | st.text()
encodings = st.sampled_from(ENCODINGS)


def units(text: str, encoding: Encoding) -> int:
    """The length of a text in code units, by encoding it."""
    return len(text.encode(CODEC[encoding], "surrogatepass")) // UNIT[encoding]


def split(text: str) -> list[str]:
    """The lines of a text with their ends, by walking through it."""
    lines, current, i = [], "", 0
    while i < len(text):
        end = 2 if text[i : i + 2] == "\r\n" else 1
        current += text[i : i + end]
        if text[i] in "\r\n":
            lines.append(current)
            current = ""
        i += end
    return [*lines, current]


@given(texts)
@example("a\r\nb\rc\n")
@example("\r\r\n\n")
def test_lines(text: str) -> None:
    index = LineIndex(text)
    assert [index.line(i) for i in range(len(index))] == [line.rstrip("\r\n") for line in split(text)]
    assert index.line(-1) == index.line(len(index)) == ""


@given(texts)
def test_offsets_and_positions_undo_each_other(text: str) -> None:
    index = LineIndex(text)
    before = ""
    for number, line in enumerate(split(text)):
        for column in range(len(line.rstrip("\r\n")) + 1):
            assert index.offset(number, column) == len(before) + column
            assert index.position(len(before) + column) == (number, column)
        before += line


@given(texts, encodings)
def test_columns_in_code_units(text: str, encoding: Encoding) -> None:
    index = LineIndex(text)
    for number in range(len(index)):
        line = index.line(number)
        for column in range(len(line) + 1):
            counted = units(line[:column], encoding)
            assert index.to_units(number, column, encoding) == counted
            assert index.from_units(number, counted, encoding) == column


@given(texts, encodings, st.integers(-3, 400), st.integers(-3, 400))
def test_columns_that_are_nowhere_stay_in_their_line(text: str, encoding: Encoding, line: int, column: int) -> None:
    index = LineIndex(text)
    assert 0 <= index.from_units(line, column, encoding) <= len(index.line(line))
    assert 0 <= index.offset(line, column) <= len(text)
    assert index.position(index.offset(line, column))[0] <= len(index)


@given(st.text(st.sampled_from("a\u00e9\u4e2d\U0001f642"), max_size=8), encodings)
def test_inside_a_character_means_before_it(text: str, encoding: Encoding) -> None:
    index = LineIndex(text)
    for column in range(len(text)):
        start, end = units(text[:column], encoding), units(text[: column + 1], encoding)
        assert {index.from_units(0, at, encoding) for at in range(start, end)} == {column}


names = st.sampled_from(["x", "\u00e9t\u00e9", "\u4e2d\u6587", "_1"])
strings = st.text(st.sampled_from("a \u00e9\u4e2d\U0001f642"), max_size=4).map(repr)
statements = st.lists(
    st.tuples(names, st.lists(names | strings, min_size=1, max_size=4).map(" + ".join)).map(" = ".join), max_size=4
)


@given(statements, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_spans_cut_out_what_the_tokenizer_sees(lines: list[str], end: str, bom: bool) -> None:
    text = "\ufeff" * bom + "".join(line + end for line in lines)
    source = Source(text)
    assert source.tree is not None
    found = [
        (source.segment(source.span(node)), node)
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.Name, ast.Constant))
    ]
    tokens = tokenize.generate_tokens(io.StringIO(text.removeprefix("\ufeff").replace(end, "\n")).readline)
    wanted = [t.string for t in tokens if t.type in (tokenize.NAME, tokenize.STRING)]
    assert sorted(segment for segment, _ in found) == sorted(wanted)
    for segment, node in found:
        assert ast.literal_eval(segment) == node.value if isinstance(node, ast.Constant) else segment.isidentifier()


def test_spans_over_lines() -> None:
    source = Source("\ufeffy = (\u00e9 +\r\n     '\U0001f642', 1)\r\n")
    assert source.tree is not None
    (statement,) = source.tree.body
    assert source.span(statement) == Span(1, 1, 2, 12)
    assert source.segment(source.span(statement)) == "y = (\u00e9 +\r\n     '\U0001f642', 1)"


@pytest.mark.parametrize(
    ("text", "message", "line", "column"),
    [
        ("x = (\n", "'(' was never closed", 1, 4),
        ("a\nb c\n", "invalid syntax", 2, 2),
        ("x = \0", "null bytes", 1, 0),
        ("x = '\ud800'", "surrogates", 1, 0),
        ("x = " + "(" * 5000, "nested", 1, None),
        ("x = " + "-" * 100_000 + "1", "nested too deeply", 1, 0),
        ("x = " + "9" * 5000, "integer string conversion", 1, None),
    ],
)
def test_what_does_not_parse_says_why(text: str, message: str, line: int, column: int | None) -> None:
    source = Source(text)
    assert source.tree is None
    assert source.problem is not None
    assert message in source.problem.message
    assert source.problem.line == line
    assert column is None or source.problem.column == column


@given(st.text())
def test_any_text_has_a_tree_or_a_problem(text: str) -> None:
    source = Source(text)
    assert (source.tree is None) == (source.problem is not None)
