"""A replacement put where the function stood: every other byte of the file stays as it is."""

from __future__ import annotations

import ast
import textwrap

from graphmend.analysis.syntax.source import Source
from graphmend.analysis.syntax.span import Span
from graphmend.model.gates.text import Function, Unfit
from graphmend.model.subject import Extent, function_text


def edit(source: Source, where: Extent, answer: str, function: Function) -> tuple[Span, str]:
    """The span of the function's lines and their new text; raises `Unfit` where that would not say what was judged."""
    old = function_text(source, where)
    newline = "\r\n" if "\r\n" in old else "\n"
    indent = old[: len(old) - len(old.lstrip(" \t"))]
    lines = textwrap.indent(textwrap.dedent(answer.replace("\r\n", "\n")).strip("\n"), indent)
    new = lines.replace("\n", newline) + (newline if old.endswith("\n") else "")
    if _meaning(_parsed(new)) != _meaning(function):
        raise Unfit("the answer has a text over several lines, which its place in the file would change")
    last = source.lines.line(where.last - 1)
    return Span(where.first, 0, where.last, len(last)), new.removesuffix(newline) if old.endswith("\n") else new


def _parsed(text: str) -> Function:
    try:
        (node,) = ast.parse(textwrap.dedent(text)).body
    except (SyntaxError, ValueError) as error:
        raise Unfit("the answer does not parse at its place in the file") from error
    assert isinstance(node, Function)
    return node


def _meaning(function: Function) -> tuple[str | None, list[str]]:
    """A function but for the indentation of its docstring."""
    documented = ast.get_docstring(function) is not None
    return ast.get_docstring(function), [ast.dump(node) for node in function.body[int(documented) :]]
