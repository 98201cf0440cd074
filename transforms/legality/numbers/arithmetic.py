"""Arithmetic of a Python number, kept as a 0-d tensor, with other numbers: its dtype, and what differs."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Container, Scalar, Static, Tensor, Value, dtype_kind
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, constant, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.as_tensors import (
    BY_ZERO,
    OF_BOOL,
    POWER,
    PRECISION,
    WRAPS,
    exact_in,
    is_refused,
)
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class NeedsPythonNumberError(Exception):
    """A use that needs a Python number; the message is the sentence to refuse with."""


class Combined(NamedTuple):
    """Two numbers, computed as tensors."""

    dtype: Hashable
    computes: bool
    """Would a wider dtype do it as Python does?"""
    differences: tuple[Difference, ...]


@answers("numbers")
def combined(
    facts: FunctionFacts,
    dtype: Hashable,
    op: ast.operator,
    other: ast.expr,
    *,
    left: bool,
    known: Value | None = None,
) -> Combined:
    """A kept number of a dtype, on the left or right of an operator, and another number (whose value is `known`)."""
    kind, of = dtype_kind(dtype), number_of(facts, other, known)
    if is_refused(folded(other)):
        raise NeedsPythonNumberError(f"`{ast.unparse(other)}` is more than a tensor can hold")
    if kind == "complex" or of == "complex":
        raise NeedsPythonNumberError(f"`{ast.unparse(other)}` is computed with a complex number")
    if kind == "bool" and not (of in ("int", "float") and isinstance(op, (ast.Add, ast.Mult))):
        raise NeedsPythonNumberError("a bool is computed with as a number")
    power = folded(other) if isinstance(op, ast.Pow) and left else None
    if isinstance(power, (int, float)) and power < 0 and kind != "float" and of != "float":
        raise NeedsPythonNumberError(f"`{ast.unparse(other)}` is a power of which torch has none for whole numbers")
    differences: list[Difference] = []
    if kind is None and isinstance(op, (ast.Sub, ast.FloorDiv, ast.Mod, ast.Pow)):
        differences.append(OF_BOOL)
    if isinstance(op, (ast.Div, ast.FloorDiv, ast.Mod)) and not (left and constant(other)):
        differences.append(BY_ZERO)
    if isinstance(op, ast.Pow):
        differences += [POWER, Difference("exception", "a power that Python cannot compute no longer raises")]
    result = _computed_in(dtype, kind, op, of)
    rest = isinstance(op, (ast.FloorDiv, ast.Mod))
    if kind in ("int", "bool") and result in ("int64", dtype) and of in ("bool", "int"):
        exact = rest and dtype == "int64"
        return Combined(result, dtype not in ("int64", "bool"), (*differences, *(() if exact else (WRAPS,))))
    if dtype == "float64" and of in NUMBER_TYPES and not rest:
        return Combined(result, False, tuple(differences))
    return Combined(result, True, (*differences, PRECISION))


def _computed_in(dtype: Hashable, kind: str | None, op: ast.operator, of: str | None) -> Hashable:
    if kind == "float":
        return dtype
    if kind is None or of is None:
        return None
    if isinstance(op, ast.Div) or of == "float":
        return "float32"
    return "int64" if kind == "bool" else dtype


def number_of(facts: FunctionFacts, other: ast.expr, known: Value | None = None) -> str | None:
    """The type of another number, where it is known; raises for what is none."""
    value = known if known is not None else facts.value(other)
    if isinstance(value, Container) or (
        isinstance(value, Static) and value.type not in (*NUMBER_TYPES, "complex", None)
    ):
        raise NeedsPythonNumberError(f"`{ast.unparse(other)}` is no number")
    found = number_type(facts, other)
    return found if found is not None else value.type if isinstance(value, (Static, Scalar)) else None


def folded(node: ast.expr) -> object:
    """The number that a literal is, or that whole ones are computed to; None where that is not known."""
    if not isinstance(node, ast.BinOp) or type(node.op) not in _FOLDED:
        return constant(node)
    left, right = folded(node.left), folded(node.right)
    if type(left) is not int or type(right) is not int:
        return None
    if isinstance(node.op, (ast.Pow, ast.LShift)) and not (0 <= right <= _MOST_BITS and abs(left) <= _MOST_BITS):
        return None
    return _FOLDED[type(node.op)](left, right)


_MOST_BITS = 2**10
_FOLDED: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
}


def is_narrow(dtype: Hashable) -> bool:
    """May a tensor of a dtype hold other numbers than Python would have computed?"""
    return dtype_kind(dtype) not in ("int", "bool") and dtype != "float64"


@answers("numbers")
def is_rounded(facts: FunctionFacts, node: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """May a number that is taken out of a tensor have been computed since, so that a narrow tensor rounds it? Not where
    every way that leads to it only takes it out, turns its sign, chooses it, or gives it a name.
    """
    if isinstance(facts.value(node), Tensor):
        return False
    match node:
        case ast.Constant(value=bool() | int() | float() as number):
            return not exact_in(number, "float32")
        case ast.Name(id=name) if name not in seen:
            bound = bindings(facts).get(name, [])
            if not bound or any(b.value is None or b.part for b in bound) or _is_added_to(facts, name):
                return True
            return any(is_rounded(facts, b.value, seen | {name}) for b in bound if b.value is not None)
        case ast.Call(func=ast.Attribute(value=taken, attr="item"), args=[]):
            return not isinstance(facts.value(taken), Tensor)
        case ast.Call(func=function, args=args) if qualified(facts, function) in _CHOOSE:
            return any(is_rounded(facts, a, seen) for a in args)
        case ast.Subscript(value=ast.Call(func=ast.Attribute(value=taken, attr="tolist"))):
            return not isinstance(facts.value(taken), Tensor)
        case ast.BinOp(left=left, op=ast.Mod() | ast.FloorDiv(), right=right):
            return is_rounded(facts, left, seen) or is_rounded(facts, right, seen)
        case ast.IfExp(body=body, orelse=orelse):
            return is_rounded(facts, body, seen) or is_rounded(facts, orelse, seen)
        case ast.UnaryOp(operand=operand):
            return is_rounded(facts, operand, seen)
    return True


def _is_added_to(facts: FunctionFacts, name: str) -> bool:
    return any(
        isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id == name
        for n in ast.walk(facts.function)
    )


#: builtins that give one of their numbers, or the nearest whole one, which a narrow float holds as well
_CHOOSE = frozenset(f"builtins.{name}" for name in ("int", "float", "bool", "abs", "min", "max", "round"))


# Forms of code around a number


def compares(pattern: ast.pattern) -> bool:
    """Does a pattern ask for nothing but equality?"""
    inner = pattern.patterns if isinstance(pattern, ast.MatchOr) else [pattern]
    return all(
        isinstance(p, ast.MatchValue) or (isinstance(p, ast.MatchAs) and p.name is None and p.pattern is None)
        for p in inner
    )


def handed_on(node: ast.expr) -> set[str]:
    """Names whose very number an expression hands on."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.IfExp(body=body, orelse=orelse):
            return handed_on(body) | handed_on(orelse)
        case ast.BoolOp(values=values):
            return {n for v in values for n in handed_on(v)}
        case ast.NamedExpr(target=target, value=value):
            return {target.id} | handed_on(value)
        case ast.Call(func=ast.Name(id="max" | "min" | "abs"), args=args):
            return {n for a in args for n in handed_on(a)}
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return handed_on(operand)
    return set()
