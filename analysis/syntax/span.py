"""A range of text."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A range of text. Lines count from 1, columns from 0 in code points; the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int
