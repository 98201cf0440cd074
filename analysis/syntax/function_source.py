"""Parses one function's text by itself: while it is edited, or after its syntax tree was released."""

from __future__ import annotations

import ast
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.syntax.source import LineIndex

#: makes the text of a method a text of its own
BEFORE_INDENT = "if 1:\n"
#: a text that parses, but as something else than one function
ANOTHER = object()


def indent(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def parse(text: str) -> ast.FunctionDef | ast.AsyncFunctionDef | object | None:
    """The one function that a text is; None where it does not parse; `ANOTHER` where it is something else."""
    indented = bool(indent(text))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(BEFORE_INDENT + text if indented else text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if indented:
        outer = body[0]
        assert isinstance(outer, ast.If)
        body = outer.body if len(body) == 1 and not outer.orelse else []
    node = body[0] if len(body) == 1 else None
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ANOTHER


class ReleasedTree:
    """A function whose syntax tree was released: the place of its text, from which it can be parsed again."""

    __slots__ = ("begin", "decorators", "end", "first")

    def __init__(self, node: ast.FunctionDef | ast.AsyncFunctionDef, lines: LineIndex) -> None:
        self.first = min((node.lineno, *(d.lineno for d in node.decorator_list)))
        self.begin = lines.offset(self.first - 1, 0)
        self.end = lines.offset((node.end_lineno or node.lineno) - 1, 1 << 30)
        self.decorators = node.decorator_list

    def reparsed(self, text: str) -> ast.FunctionDef | ast.AsyncFunctionDef:
        """The same tree, parsed again from the text of the whole module."""
        own = text[self.begin : self.end].removeprefix("\ufeff")
        node = parse(own)
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ast.increment_lineno(node, self.first - (2 if indent(own) else 1))
        return node
