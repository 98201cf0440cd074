"""Places in source files: text as it was imported, columns in code points, the statement around a line."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache


def line_text(path: str, line: int) -> str:
    """A line of a file. Texts of unsaved buffers stand in `linecache`; BOM and encoding are its business."""
    return linecache.getline(path, line).rstrip("\r\n")


def code_points(path: str, line: int, utf8: int) -> int:
    """Python counts columns in UTF-8 bytes; everybody else here counts code points."""
    text = line_text(path, line)
    if text.isascii():
        return utf8
    return len(text.encode("utf-8", "surrogatepass")[:utf8].decode("utf-8", "ignore"))


@lru_cache(maxsize=64)
def _tree(path: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module(body=[], type_ignores=[])


def raises(path: str, line: int) -> bool:
    """Whether a `raise` or `assert` statement stands on a line."""
    return any(
        isinstance(node, (ast.Raise, ast.Assert)) and node.lineno <= line <= (node.end_lineno or node.lineno)
        for node in ast.walk(_tree(path))
    )


@lru_cache(maxsize=64)
def _nodes(path: str) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Ends of the nodes that begin at (line, UTF-8 column)."""
    found: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for node in ast.walk(_tree(path)):
        line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
        end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
        if line is not None and column is not None and end_line is not None and end_column is not None:
            found.setdefault((line, column), []).append((end_line, end_column))
    return found


def span(
    path: str, line: int, column: int | None, end_line: int | None, end_column: int | None
) -> tuple[int, int, int, int]:
    """(line, column, end line, end column) in code points, from what an instruction or a stack frame knows.

    Stack frames carry no end line (Python 3.11 to 3.13): a node of the tree that begins there and ends in that
    column has it. Before Python 3.11 there are no columns; the span is then the line's text.
    """
    text = line_text(path, line)
    if column is None or end_column is None:
        return line, len(text) - len(text.lstrip()), line, len(text)
    if end_line is None:
        ends = [end for end in _nodes(path).get((line, column), ()) if end[1] == end_column]
        if ends:
            end_line = min(ends)[0]
        elif end_column > column:
            end_line = line
        else:
            return line, code_points(path, line, column), line, len(text)
    return line, code_points(path, line, column), end_line, code_points(path, end_line, end_column)
