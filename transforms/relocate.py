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
