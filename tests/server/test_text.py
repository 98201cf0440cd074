"""The line index under edits, against an oracle that shares no code with it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphmend.analysis.syntax.source import Encoding
from graphmend.server.documents.text_buffer import Text

ENCODINGS: tuple[Encoding, ...] = ("utf-8", "utf-16", "utf-32")
CODECS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}

pieces = st.lists(
    st.sampled_from(
        [
            "a",
            "bc",
            " ",
            "\t",
            "\n",
            "\r",
            "\r\n",
            "\f",
            "\u2028",
            "\x85",
            "é",
            "e\u0301",
            "☃",
            "\U0001d4b3",
            "\ufeff",
            "🔥x",
        ]
    ),
    max_size=12,
).map("".join)


def oracle_lines(text: str) -> list[tuple[int, str]]:
    """(begin, content without its end) of every line, found character by character."""
    lines, begin, i = [], 0, 0
    while i < len(text):
        if text[i] in "\r\n":
            end = i + 2 if text[i : i + 2] == "\r\n" else i + 1
            lines.append((begin, text[begin:i]))
            begin = i = end
        else:
            i += 1
    return [*lines, (begin, text[begin:])]


def oracle_units(text: str, encoding: Encoding) -> int:
    codec, width = CODECS[encoding]
    return len(text.encode(codec)) // width


def assert_same(text: Text, expected: str) -> None:
    lines = oracle_lines(expected)
    assert text.text == expected
    assert len(text) == len(lines)
    assert text.starts == [begin for begin, _ in lines]
    for number, (begin, content) in enumerate(lines):
        assert text.line(number) == content
        assert text.start(number) == begin
        assert text.offset(number, 10**6) == begin + len(content)
    for offset in range(len(expected) + 1):
        line = max(n for n, (begin, _) in enumerate(lines) if begin <= offset)
        assert text.position(offset) == (line, offset - lines[line][0])


@dataclass
class Edit:
    begin: float
    end: float
    new: str

    def on(self, text: str) -> tuple[int, int]:
        begin, end = sorted((round(self.begin * len(text)), round(self.end * len(text))))
        return begin, end


fraction = st.floats(0, 1, allow_nan=False)


@given(pieces, st.lists(st.builds(Edit, fraction, fraction, pieces), max_size=8))
def test_edits_leave_the_index_that_the_whole_text_would_give(before: str, edits: list[Edit]) -> None:
    text, expected = Text(before), before
    for edit in edits:
        begin, end = edit.on(expected)
        text.replace(begin, end, edit.new)
        expected = expected[:begin] + edit.new + expected[end:]
        assert_same(text, expected)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(line=pieces)
def test_columns_go_to_every_encoding_and_back(encoding: Encoding, line: str) -> None:
    text = Text(line)
    for number, (_, content) in enumerate(oracle_lines(line)):
        for column in range(len(content) + 1):
            units = text.to_units(number, column, encoding)
            assert units == oracle_units(content[:column], encoding)
            assert text.from_units(number, units, encoding) == column
        assert text.from_units(number, 10**6, encoding) == len(content)


@pytest.mark.parametrize(("encoding", "inside"), [("utf-8", (1, 2, 3)), ("utf-16", (1,))])
def test_a_column_inside_a_character_means_before_it(encoding: Encoding, inside: tuple[int, ...]) -> None:
    for units in inside:
        assert Text("\U0001d4b3y").from_units(0, units, encoding) == 0


@pytest.mark.parametrize(
    ("before", "begin", "new", "lines"),
    [
        pytest.param("a\rb", 2, "\n", 2, id="LF-after-CR-joins-it"),
        pytest.param("a\r\nb", 2, "x", 3, id="text-between-CR-and-LF-parts-them"),
        pytest.param("a\nb", 1, "\r", 2, id="CR-before-LF-joins-it"),
    ],
)
def test_line_ends_join_and_part(before: str, begin: int, new: str, lines: int) -> None:
    text = Text(before)
    text.replace(begin, begin, new)
    assert len(text) == lines
    assert_same(text, before[:begin] + new + before[begin:])
