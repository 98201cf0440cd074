"""Gives mended code the line numbers of the original file, so that tracebacks and `inspect` show the text on disk.

Knows two texts and a syntax tree; not why they differ.
"""

from __future__ import annotations

import ast
from difflib import SequenceMatcher
from typing import NamedTuple


class Line(NamedTuple):
    """Where a mended line stands in the original: its number there, and whether it is there as it is."""

    number: int
    same: bool


def line_map(original: list[str], mended: list[str]) -> list[Line]:
    """For each mended line, the original line that it stands for. Changed lines stay within those that they replace.

    Numbers count from 1 and never decrease.
    """
    lines: list[Line] = []
    for tag, start, end, first, last in SequenceMatcher(None, original, mended).get_opcodes():
        if tag == "equal":
            lines += [Line(start + i + 1, True) for i in range(last - first)]
        elif tag == "replace":
            lines += [Line(start + min(i, end - start - 1) + 1, False) for i in range(last - first)]
        elif tag == "insert":
            lines += [Line(max(start, 1), False)] * (last - first)
    return lines


class Places:
    """Where places in intermediate texts stand in the original one."""

    def __init__(self, original: str) -> None:
        self._original = original
        self._lines = original.split("\n")
        self._maps: dict[str, list[Line]] = {}

    def original(self, text: str, row: int, column: int) -> tuple[int, int]:
        """Row and column, counted from 1. Of a line that was rewritten only the beginning is known."""
        if text == self._original:
            return row, column
        lines = text.split("\n")
        if text not in self._maps:
            self._maps[text] = line_map(self._lines, lines)
        known = self._maps[text]
        line = _line(known, row)
        if line.same:
            return line.number, column
        number = self._likest(lines[row - 1], known, row)
        before = self._lines[number - 1]
        return number, len(before) - len(before.lstrip()) + 1

    def _likest(self, text: str, known: list[Line], row: int) -> int:
        """Of the original lines that the rewritten ones around a row stand for, the one most like its text."""
        first = next((line.number for line in reversed(known[: row - 1]) if line.same), 0) + 1
        last = next((line.number for line in known[row:] if line.same), len(self._lines) + 1)
        return max(
            range(first, last),
            key=lambda number: SequenceMatcher(None, self._lines[number - 1].strip(), text.strip()).ratio(),
            default=known[row - 1].number,
        )


def parse(original: str, mended: str) -> ast.Module:
    """The tree of `mended`, its nodes placed where their lines stand in `original`. Both end their lines in LF."""
    tree = ast.parse(mended)
    originals = original.split("\n")
    lines = line_map(originals, mended.split("\n"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.expr, ast.stmt)) or hasattr(node, "lineno"):
            _place(node, lines, originals)
    return tree


def _place(node: ast.AST, lines: list[Line], originals: list[str]) -> None:
    """Moves one node. Columns hold on lines that did not change; elsewhere it takes a whole line: no caret is drawn."""
    start, end = _line(lines, node.lineno), _line(lines, node.end_lineno)  # type: ignore[attr-defined]
    node.lineno, node.end_lineno = start.number, end.number  # type: ignore[attr-defined]
    if start.same and end.same:
        return
    text = originals[end.number - 1]
    if not start.same or start.number == end.number:
        text = originals[start.number - 1]
        node.end_lineno = start.number  # type: ignore[attr-defined]
        node.col_offset = len(text) - len(text.lstrip())  # type: ignore[attr-defined]
    node.end_col_offset = len(text.encode("utf-8", "surrogatepass"))  # type: ignore[attr-defined]


def _line(lines: list[Line], number: int) -> Line:
    return lines[min(number, len(lines)) - 1]
