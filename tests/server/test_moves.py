"""Spans under edits: a span that no edit touches still covers the same text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graphmend.analysis.syntax.span import Span
from graphmend.server.documents.open_documents import Document
from graphmend.server.documents.position_mapping import map_span

texts = st.text(alphabet="ab\n\r\U0001d4b3é ", max_size=30)
fraction = st.floats(0, 1, allow_nan=False)


def span_of(document: Document, begin: int, end: int) -> Span:
    line, column = document.text.position(begin)
    end_line, end_column = document.text.position(end)
    return Span(line + 1, column, end_line + 1, end_column)


@given(texts, texts, texts, texts, fraction, fraction)
def test_a_span_keeps_its_text_through_edits_before_and_behind(
    before: str, inside: str, behind: str, new: str, at: float, to: float
) -> None:
    # Marks around the span keep "\r" and "\n" from joining across its border.
    before, inside, behind = before + "|", "<" + inside + ">", "|" + behind
    document = Document("file:///a.py", 1, before + inside + behind)
    span = span_of(document, len(before), len(before + inside))
    begin, end = sorted((round(at * len(before)), round(to * len(before))))
    document.replace(begin, end, new)
    document.replace(len(document.text.text), len(document.text.text), new)
    moved = map_span(span, document.moves(1))
    assert moved is not None
    offset = len(before) - (end - begin) + len(new)
    assert moved == span_of(document, offset, offset + len(inside))


def test_an_edit_inside_stretches_the_span_and_one_over_its_border_ends_it() -> None:
    document = Document("file:///a.py", 1, "aa bbbb cc")
    span = span_of(document, 3, 7)
    document.replace(4, 5, "xyz\n")
    assert map_span(span, document.moves(1)) == span_of(document, 3, 10)
    document.replace(2, 4, "")
    assert map_span(span, document.moves(1)) is None


def test_moves_are_those_since_a_stamp() -> None:
    document = Document("file:///a.py", 1, "abc")
    span = span_of(document, 1, 2)
    document.replace(0, 0, "\n")
    assert map_span(span, document.moves(2)) == span
    assert map_span(span, document.moves(1)) == Span(2, 1, 2, 2)


@given(texts, texts)
def test_a_whole_new_text_is_an_edit_of_what_differs(old: str, new: str) -> None:
    document = Document("file:///a.py", 1, "<" + old + ">")
    first = span_of(document, 0, 1)
    document.replace_all("<" + new + ">")
    assert document.text.text == "<" + new + ">"
    assert map_span(first, document.moves(1)) == first
