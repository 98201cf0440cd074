"""The text of expressions, taken from the file as it is written. Knows positions and precedence, no rewrite and
no libcst.

New code is built from the user's own spelling: an expression keeps its quotes, its spacing and the comments
inside its brackets.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in

if TYPE_CHECKING:
    from graphmend.analysis.syntax.source import Source

Replacements = Mapping[ast.expr, str]

#: expressions that bind at least as tight as an attribute access
_ATOMS = (
    ast.Name,
    ast.Attribute,
    ast.Call,
    ast.Subscript,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.DictComp,
    ast.SetComp,
    ast.JoinedStr,
)


class Code:
    """Text of the expressions of one source."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def text(self, node: ast.expr | ast.stmt, replace: Replacements | None = None) -> str:
        """The text of a node with some expressions inside it replaced.

        A replacement must be atomic (`operand` makes it so) unless it stands between brackets or commas.
        """
        if replace and isinstance(node, ast.expr) and node in replace:
            return replace[node]
        start, end = self._offsets(node)
        pieces: list[str] = []
        at = start
        for inner, new in sorted(self._inside(node, replace or {}), key=self._outermost_first):
            left, right = self._offsets(inner)
            if left < at:  # inside an expression that is replaced as a whole
                continue
            if isinstance(inner, ast.NamedExpr) and is_atom(new):
                left, right = self._with_brackets(left, right)
            pieces += [self.source.text[at:left], new]
            at = right
        pieces.append(self.source.text[at:end])
        return "".join(pieces)

    def argument(self, node: ast.expr, replace: Replacements | None = None) -> str:
        """The text of a node for a place between commas in brackets."""
        text = self.text(node, replace)
        if isinstance(node, (ast.GeneratorExp, ast.Tuple)) and not text.startswith("("):
            return f"({text})"
        bare = isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Starred))
        return f"({text})" if bare else text

    def operand(self, node: ast.expr, replace: Replacements | None = None) -> str:
        """The text of a node for a place next to any operator, or in front of a dot (a number aside)."""
        text = self.text(node, replace)
        return text if is_atom(text) or text.isdecimal() else f"({text})"

    def line(self, node: ast.expr, replace: Replacements | None = None) -> str:
        """The text of a node for the right side of an assignment: brackets around what spans lines without any
        of its own.
        """
        text = self.text(node, replace)
        return f"({text})" if "\n" in text and not parses(text) else text

    def _offsets(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        span, lines = self.source.span(node), self.source.lines
        return lines.offset(span.line - 1, span.column), lines.offset(span.end_line - 1, span.end_column)

    def _with_brackets(self, left: int, right: int) -> tuple[int, int]:
        """The place of `(n := x)`, given that of `n := x`; a call's brackets are its own."""
        text = self.source.text
        before = text[left - 2 : left - 1]
        own = text[left - 1 : left] == "(" and text[right : right + 1] == ")"
        return (left - 1, right + 1) if own and not (before.isalnum() or before in "_)]") else (left, right)

    def _outermost_first(self, item: tuple[ast.expr, str]) -> tuple[int, int]:
        left, right = self._offsets(item[0])
        return left, -right

    @staticmethod
    def _inside(node: ast.AST, replace: Replacements) -> list[tuple[ast.expr, str]]:
        return [(n, replace[n]) for n in nodes_in(node) if isinstance(n, ast.expr) and n in replace] if replace else []


def shortened(node: ast.AST) -> str:
    """A node in one line of at most 50 characters, for a sentence."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 50 else f"{text[:47]}..."


def parses(text: str) -> bool:
    """Does `text` stand on a line of its own as an expression?"""
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True


def is_atom(text: str) -> bool:
    """Does `text` keep its meaning next to any operator and in front of a dot?"""
    try:
        node = ast.parse(f"({text}\n)", mode="eval").body
    except SyntaxError:
        return False
    if isinstance(node, _ATOMS):
        return not isinstance(node, ast.Call) or not text.startswith("await ")
    if isinstance(node, ast.Tuple):
        return text.startswith("(") and text.endswith(")") and is_bracketed(text)
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, int) or isinstance(node.value, bool)  # `1.real` is a syntax error
    return is_bracketed(text)


def bracketed(text: str) -> str:
    """`text`, in parentheses where it would not keep its meaning next to an operator."""
    return text if is_atom(text) else f"({text})"


def is_bracketed(text: str) -> bool:
    """Is all of `text` inside one pair of parentheses?"""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    try:
        ast.parse(text[1:-1].strip().join(("[", "]")), mode="eval")
    except SyntaxError:
        return False
    return True
