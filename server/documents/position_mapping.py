"""Where a place is after edits made elsewhere. Plain positions; knows no text and no protocol."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from graphmend.analysis.syntax.span import Span

Position = tuple[int, int]


class PositionChange(NamedTuple):
    """One edit as positions see it: the text from `begin` to `old_end` now ends at `new_end`. Lines from 1."""

    begin: Position
    old_end: Position
    new_end: Position


def map_span(span: Span, moves: Iterable[PositionChange]) -> Span | None:
    """The span after the edits, itself where it stands as it stood; None where one of them replaced its begin or its
    end."""
    before = begin, end = (span.line, span.column), (span.end_line, span.end_column)
    for edit in moves:
        if edit.begin >= end and not (edit.begin == end == begin):
            continue
        if edit.old_end <= begin:
            if edit.old_end[0] < begin[0] and edit.old_end[0] == edit.new_end[0]:
                continue
            begin, end = _behind(begin, edit), _behind(end, edit)
        elif begin <= edit.begin and edit.old_end <= end and (begin, end) != (edit.begin, edit.old_end):
            end = _behind(end, edit)  # an edit inside: the span grows or shrinks around it
        else:
            return None
    return span if (begin, end) == before else Span(*begin, *end)


def touched(span: Span, moves: Iterable[PositionChange]) -> bool:
    """Whether an edit changed anything in a span. Text put right before it, or on the lines behind it, is outside."""
    here: Span | None = span
    for edit in moves:
        if here is None:
            return True
        begin, end = (here.line, here.column), (here.end_line, here.end_column)
        inserted_before = edit.begin == edit.old_end == begin
        if edit.begin <= end and edit.old_end >= begin and not inserted_before and edit.old_end != begin:
            return True
        here = map_span(here, [edit])
    return here is None


def _behind(position: Position, edit: PositionChange) -> Position:
    """A position at or behind the edit's end, after it."""
    line, column = position
    if line == edit.old_end[0]:
        return edit.new_end[0], edit.new_end[1] + column - edit.old_end[1]
    return line + edit.new_end[0] - edit.old_end[0], column
