"""What the frames of an error tell: the values that a failed check compared, the names in the statement that failed.

Only names, attributes, indices and arithmetic are evaluated again, in the frame that raised.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import operator
import os
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import torch

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.GtE: ast.Lt,
    ast.NotIn: ast.In,
    ast.Eq: ast.NotEq,
    ast.In: ast.NotIn,
}
_PURE = (
    ast.Expression,
    ast.Name,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)
_ASKED = frozenset({"size", "dim", "ndimension", "numel", "len", "int", "min", "max", "tuple", "list"})
"""What may be called to evaluate a side of a comparison again."""
MOST_LINES = 50_000
TORCH = os.path.dirname(torch.__file__)


class Compared:
    """A comparison that did not hold: the syntax of both sides, their values, and the operator that was to hold."""

    def __init__(self, sides: tuple[ast.expr, ast.expr], values: tuple[Any, Any], operator: type) -> None:
        self.sides = sides
        self.values = values
        self.operator = operator


def compared(error: BaseException) -> list[Compared]:
    """The comparisons of the assertion, or of the test in front of the `raise`, that an error comes from."""
    frame, line = None, 0
    trace = error.__traceback__
    if error.__cause__ is not None and error.__cause__.__traceback__ is not None:
        trace = error.__cause__.__traceback__
    while trace is not None:
        frame, line, trace = trace.tb_frame, trace.tb_lineno, trace.tb_next
    if frame is None:
        return []
    around = _statements(frame.f_code.co_filename, line)
    if not around:
        return []
    if isinstance(around[-1], ast.Assert):
        tests = [(around[-1].test, False)]
    elif isinstance(around[-1], ast.Raise):
        tests = [
            (outer.test, inner in outer.body)
            for outer, inner in itertools.pairwise(around)
            if isinstance(outer, ast.If)
        ][-1:]
    else:
        return []
    names = {**frame.f_globals, **frame.f_locals}
    found: list[Compared] = []
    for test, refused in tests:
        found += _failed(test, refused, names)
    return found


def _failed(test: ast.expr, refused: bool, names: dict[str, Any]) -> Iterator[Compared]:
    """The comparisons in a test that do not hold; `refused` where it must be false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _failed(test.operand, not refused, names)
    elif isinstance(test, ast.BoolOp):
        for each in test.values:
            yield from _failed(each, refused, names)
    elif isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        for left, compare, right in zip(sides, test.ops, sides[1:]):  # noqa: B905
            wanted = _OPPOSITE.get(type(compare)) if refused else type(compare)
            if wanted is not None:
                first, second = value(left, names), value(right, names)
                if first is not None and second is not None and not _holds(first, second, wanted):
                    yield Compared((left, right), (first, second), wanted)


def value(node: ast.expr, names: dict[str, Any]) -> Any:
    """What an expression stands for in a frame; None where it does more than look."""
    for each in ast.walk(node):
        if isinstance(each, ast.Call):
            called = each.func.attr if isinstance(each.func, ast.Attribute) else getattr(each.func, "id", "")
            if called not in _ASKED or each.keywords:
                return None
        elif not isinstance(each, _PURE):
            return None
    try:
        return eval(compile(ast.Expression(node), "<side>", "eval"), names)
    except Exception:
        return None


_HOLDS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.LtE: operator.le,
    ast.GtE: operator.ge,
    ast.In: lambda first, second: first in second,
    ast.NotIn: lambda first, second: first not in second,
}


def _holds(first: Any, second: Any, wanted: type) -> bool:
    """Whether a comparison holds; one that cannot be made tells nothing, and is taken to."""
    try:
        return bool(_HOLDS[wanted](first, second))
    except Exception:
        return True


def sizes(error: BaseException) -> Iterator[tuple[int, int]]:
    """(a size that was refused, the one to have instead), for each failed comparison of whole numbers."""
    for each in compared(error):
        left, (first, second) = each.sides[0], each.values
        if _are_shapes(each):
            yield from ((a, b) for a, b in zip(first, second) if a != b)  # noqa: B905
        elif each.operator is ast.In and isinstance(second, (tuple, list, set)) and _whole(first):
            yield from ((first, other) for other in second if _whole(other))
        elif _whole(first) and _whole(second) and each.operator is not ast.NotEq:
            if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and second == 0:
                continue
            strict = (each.operator is ast.Gt) - (each.operator is ast.Lt)
            yield first, second + strict
            yield second, first - strict


def shapes(error: BaseException) -> Iterator[tuple[tuple[int, ...], tuple[int, ...], list[str]]]:
    """(the shape of a tensor that was refused, the one to have instead, the names on its side of the comparison)."""
    for each in filter(_are_shapes, compared(error)):
        (left, right), (first, second) = each.sides, each.values
        yield tuple(first), tuple(second), _read(left)
        yield tuple(second), tuple(first), _read(right)


def _are_shapes(failed: Compared) -> bool:
    whole = (isinstance(side, tuple) and all(map(_whole, side)) for side in failed.values)
    return failed.operator is ast.Eq and all(whole)


def remainders(error: BaseException) -> Iterator[tuple[int, int]]:
    """(a size, what must divide it), for each failed `size % part == 0`."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    for each in compared(error) if trace is not None else ():
        left = each.sides[0]
        if isinstance(left, ast.BinOp) and isinstance(left.op, ast.Mod) and each.values[1] == 0 and trace is not None:
            names = {**trace.tb_frame.f_globals, **trace.tb_frame.f_locals}
            size, part = value(left.left, names), value(left.right, names)
            if _whole(size) and _whole(part) and part > 1:
                yield size, part


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def blamed(error: BaseException, constructor: Any) -> list[str]:
    """The parameters of a constructor whose values reach the statement that failed, nearest first: in the constructor
    itself, or in a method through an attribute that the constructor set.
    """
    code = getattr(constructor, "__code__", None)
    if not isinstance(code, CodeType):
        return []
    own = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    sources = _sources(code)
    found: list[str] = []
    for statement in _failing(error, code):
        names = _read(statement)
        seen: set[str] = set()
        while names:
            name = names.pop(0)
            if name not in seen:
                seen.add(name)
                found += [name] if name in own else []
                names += [n for n in sources.get(name, ()) if n not in seen]
    return list(dict.fromkeys(found))


def inner(error: BaseException) -> list[tuple[list[ast.stmt], dict[str, Any]]]:
    """The statements that an error went through, the innermost first, each with those around it and the names of its
    frame; those of torch are left out.
    """
    found = []
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        around = _statements(path, trace.tb_lineno) if not path.startswith(TORCH) else []
        if around:
            found.append((around, {**trace.tb_frame.f_globals, **trace.tb_frame.f_locals}))
        trace = trace.tb_next
    return found[::-1]


Reached = tuple[int, ...]
"""How far a call came: the lines of the statements that were on the way when it failed, the outermost first."""


def reached(error: BaseException) -> Reached:
    found = []
    trace = error.__traceback__
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(TORCH):
            found.append(trace.tb_lineno)
        trace = trace.tb_next
    return tuple(found)


def header(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement without the blocks in it, or of an expression."""
    if isinstance(node, (ast.For, ast.While, ast.If)):
        return ast.walk(node.iter if isinstance(node, ast.For) else node.test)
    return ast.walk(node) if not isinstance(node, (ast.With, ast.Try)) else iter(())


def _failing(error: BaseException, code: CodeType) -> Iterator[ast.stmt]:
    """The statements that an error went through, the innermost first; what it went through is a constructor's frame, or
    that of any method of a file in which the constructor stands.
    """
    lines: list[tuple[str, int]] = []
    for each in (error, error.__cause__):
        trace = each.__traceback__ if each is not None else None
        while trace is not None:
            lines.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
            trace = trace.tb_next
    for path, line in reversed(lines):
        if path == code.co_filename:
            around = _statements(path, line)
            inside = [s for s in around if not isinstance(s, (ast.ClassDef, ast.FunctionDef))]
            if inside:
                yield inside[-1]


def _statements(path: str, line: int) -> list[ast.stmt]:
    """The statements of a file that a line lies in, the outermost first."""
    tree = _tree(path)
    body: list[Any] = list(tree.body) if tree is not None else []
    found: list[ast.stmt] = []
    while body:
        holding = [n for n in body if n.lineno <= line <= (n.end_lineno or n.lineno)]
        if not holding:
            break
        found.append(holding[-1])
        inner = (getattr(holding[-1], field, []) for field in ("body", "orelse", "finalbody"))
        body = [statement for part in inner if isinstance(part, list) for statement in part]
    return found


@functools.lru_cache(maxsize=64)
def _tree(path: str) -> ast.Module | None:
    lines = linecache.getlines(path)
    if not lines or len(lines) > MOST_LINES:
        return None
    try:
        return ast.parse("".join(lines))
    except (SyntaxError, ValueError, RecursionError):  # no Python, with null bytes, nested too deeply
        return None


def _sources(code: CodeType) -> dict[str, list[str]]:
    """What each local name and attribute of `self` that a constructor sets is made from."""
    around = _statements(code.co_filename, code.co_firstlineno + 1)
    function = next((s for s in reversed(around) if isinstance(s, ast.FunctionDef) and s.name == code.co_name), None)
    found: dict[str, list[str]] = {}
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Assign):
            for target in (n for t in node.targets for n in ast.walk(t)):
                name = _name(target)
                if name is not None:
                    found.setdefault(name, []).extend(_read(node.value))
        elif isinstance(node, (ast.For, ast.comprehension)):
            for target in ast.walk(node.target):
                name = _name(target)
                if name is not None:
                    found.setdefault(name, []).extend(_read(node.iter))
    return found


def _name(node: ast.AST) -> str | None:
    """`dim` of a name, `self.dim` of an attribute."""
    if isinstance(node, ast.Name):
        return node.id if node.id != "self" else None
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
        return f"self.{node.attr}"
    return None


def _read(node: ast.AST) -> list[str]:
    parts: list[ast.AST] = [node]
    if isinstance(node, (ast.For, ast.While, ast.If, ast.With)):  # what stands in front of its block
        parts = [getattr(node, "iter", None) or getattr(node, "test", None) or node]
    return [name for part in parts for each in ast.walk(part) if (name := _name(each)) is not None]
