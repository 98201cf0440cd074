"""The functions that an edited text is cut into: where each stands, and whether an edit can be told from others.

A unit is a function of the top level or a method of a top-level class, with the empty lines and comments behind it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from graphmend.analysis.definitions import FunctionInfo, ModuleInfo, is_stub
from graphmend.analysis.function_text import indent as indent_of
from graphmend.analysis.region import may_compile
from graphmend.analysis.source import Source
from graphmend.analysis.trees import walk

_LINE_END = re.compile(r"\r\n|\r|\n")
_IS_EMPTY = re.compile(r"[ \t\f]*(?:#.*)?\Z", re.DOTALL)
_QUOTES = ('"""', "'''")
#: calls by which a function adds members to an object
_REGISTERS = frozenset({"register_buffer", "register_parameter", "add_module", "register_module", "setattr", "delattr"})


class Unit:
    """A function's place in the text. Offsets count characters, lines from 1."""

    __slots__ = (
        "begin",
        "broken",
        "end",
        "first",
        "header",
        "indent",
        "info",
        "line",
        "lines",
        "parsed_lines",
        "seen_outside",
    )

    def __init__(self, info: FunctionInfo, begin: int, end: int, line: int, lines: int, text: str) -> None:
        self.info = info
        self.begin = begin
        self.end = end
        self.line = self.first = line
        self.lines = self.parsed_lines = lines
        self.broken = False
        self.header = header(info.node)
        self.indent = indent_of(text)
        self.seen_outside = is_seen_outside(info.node, info, text)

    @property
    def grown(self) -> int:
        """By how many lines, since the whole text was parsed."""
        return self.lines - self.parsed_lines


def units(module: ModuleInfo, source: Source) -> Iterator[Unit]:
    for info in (*module.functions.values(), *(m for c in module.classes.values() for m in c.methods.values())):
        node = info.node
        assert not isinstance(node, ast.Lambda)
        first = min((node.lineno, *(d.lineno for d in node.decorator_list)))
        last = node.end_lineno or node.lineno
        while last < len(source.lines) and _IS_EMPTY.match(source.lines.line(last)):
            last += 1
        begin, end = source.lines.offset(first - 1, 0), source.lines.offset(last - 1, 1 << 30)
        text = source.text[begin:end]
        if "\f" not in indent_of(text) and text.lstrip().startswith(("def ", "async ", "@")):
            yield Unit(info, begin, end, first, last - first + 1, text)


def may_go_on(own: str, indent: str, text: str) -> bool:
    """Whether a function that does not parse by itself may do so with what stands around it in `text`.

    Only its decorators are left; or it has a line that is no deeper than the function itself, as a decorator or the
    head of a class would be; or it opens a string that an odd quote elsewhere closes.
    """
    lines = _LINE_END.split(own)
    if not any(line.lstrip().startswith(("def ", "async ")) for line in lines) or any(
        len(indent_of(line)) <= len(indent) for line in lines[1:] if not _IS_EMPTY.match(line)
    ):
        return True
    return not all(_are_even(own, quote) for quote in _QUOTES) and all(_are_even(text, quote) for quote in _QUOTES)


def _are_even(text: str, quote: str) -> bool:
    return text.count(quote) % 2 == 0


def is_seen_outside(node: ast.AST, info: FunctionInfo, text: str) -> bool:
    """Whether a function may do more than compute its result, or tells what others get: an edit may change anything."""
    if may_compile(text) or (info.name == "example_inputs" and info.owner is None) or info.transparent is not None:
        return True
    me = info.parameters[0].arg if info.owner is not None and info.parameters else None
    for inner in walk(node):
        if isinstance(inner, ast.Global):
            return True
        if isinstance(inner, ast.Attribute) and not isinstance(inner.ctx, ast.Load):
            # an attribute of the instance is read by other methods; any other counts where it could switch a flag on
            own = isinstance(inner.value, ast.Name) and inner.value.id == me
            if own or inner.attr in info.module.switched_off:
                return True
        if isinstance(inner, ast.Call):
            name = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
            if name in _REGISTERS or name in info.module.idle or name.startswith("register_"):
                return True
    return False


def header(node: ast.AST) -> str:
    """What others see of a function: its name, parameters, decorators and annotations."""
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    parts: list[ast.AST] = [node.args, *node.decorator_list, *([node.returns] if node.returns is not None else [])]
    stub = " stub " if is_stub(node) else " "
    return f"{type(node).__name__} {node.name}{stub}" + " ".join(ast.dump(p) for p in parts)


def leaves_unit(text: str, indent: str, following: str) -> bool:
    """Whether a unit's text reaches into what stands around it: another indentation, a line that goes on."""
    if indent_of(text) != indent or text.rstrip(" \t").endswith("\\"):
        return True
    return text.endswith("\r") and following == "\n"
