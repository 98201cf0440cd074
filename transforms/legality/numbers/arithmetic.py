"""Arithmetic of a Python number, kept as a 0-d tensor, with other numbers: its dtype, and what differs."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Const, Container, Scalar, Static, Tensor, Value, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, called, constant, method, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.as_tensors import (
    BY_ZERO,
    NOT_FINITE,
    OF_BOOL,
    POWER,
    PRECISION,
    RANGE,
    WRAPS,
    exact_in,
    is_refused,
)
from graphmend.transforms.legality.numbers.counterparts import NUMPY, Counterpart
from graphmend.transforms.legality.rows.places import not_negative
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
    number: ast.expr | None = None,
) -> Combined:
    """A kept number of a dtype, on the left or right of an operator, and another number (whose value is `known`)."""
    kind, of = dtype_kind(dtype), number_of(facts, other, known)
    if is_refused(folded(other)):
        raise NeedsPythonNumberError(f"`{ast.unparse(other)}` is more than a tensor can hold")
    if kind == "complex" or of == "complex":
        raise NeedsPythonNumberError(f"`{ast.unparse(other)}` is computed with a complex number")
    if kind == "bool" and not (of in ("int", "float") and isinstance(op, (ast.Add, ast.Mult))):
        raise NeedsPythonNumberError("a bool is computed with as a number")
    power = other if left else number
    if isinstance(op, ast.Pow) and "float" not in (kind, of) and not _is_from_zero(facts, power):
        says = f"`{ast.unparse(power or other)}` may be a negative power, of which torch has none for whole numbers"
        raise NeedsPythonNumberError(says)
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
    return Combined(
        result, True, (*differences, PRECISION, *((RANGE, NOT_FINITE) if _may_leave(dtype, op, other) else ()))
    )


def _may_leave(dtype: Hashable, op: ast.operator, other: ast.expr) -> bool:
    """May a result be out of the range of a dtype that is narrow, or not known, where a Python number has none?"""
    if not isinstance(op, (ast.Add, ast.Sub, ast.Mult, ast.Pow)):
        return False
    if dtype in ("float32", "bfloat16", "float64") and isinstance(op, (ast.Add, ast.Sub)):
        return False
    value = folded(other)
    if isinstance(value, float) and abs(value) <= 1:  # no farther than the largest number is rounded
        return isinstance(op, ast.Pow)
    return not (isinstance(op, ast.Mult) and value in (0, 1))


def _is_from_zero(facts: FunctionFacts, number: ast.expr | None) -> bool:
    """Is a number proven not to be negative?"""
    if number is None:
        return False
    value = folded(number)
    return value >= 0 if isinstance(value, (int, float)) else constant(number) is None and not_negative(facts, number)


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


def always(node: ast.expr, value: Value) -> object:
    """The number that an expression always is; None where that is not known."""
    return value.value if isinstance(value, Const) else folded(node)


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
            if not bound or any(b.value is None or b.part for b in bound) or is_added_to(facts, name):
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


def is_added_to(facts: FunctionFacts, name: str) -> bool:
    """Is a name changed by `+=` and its like?"""
    return any(
        isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target.id == name
        for n in nodes_in(facts.function)
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


def handed_on(facts: FunctionFacts, node: ast.expr) -> set[str]:
    """Names whose very number an expression hands on, or may once it is a tensor: a cast of a tensor that has the dtype
    already is that tensor.
    """
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.IfExp(body=body, orelse=orelse):
            return handed_on(facts, body) | handed_on(facts, orelse)
        case ast.BoolOp(values=values):
            return {n for v in values for n in handed_on(facts, v)}
        case ast.NamedExpr(target=target, value=value):
            return {target.id} | handed_on(facts, value)
        case ast.Call(args=args, keywords=keywords) if not _is_own(facts, node):
            return {n for a in (*args, *(k.value for k in keywords)) for n in handed_on(facts, a)}
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return handed_on(facts, operand)
    return set()


def counted_anew(facts: FunctionFacts, node: ast.AugAssign) -> Counterpart:
    """`s = s + value` for `s += value`."""
    literal = isinstance(node.value, ast.Constant)
    value = Code(facts.source).operand(node.value) if literal else "{value}"
    parts = (("target", node.target), *(() if literal else (("value", node.value),)))
    return Counterpart(node.target, formula=f"{{target}} = {{target}} {_SIGNS[type(node.op)]} {value}", parts=parts)


_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip
#: builtins, and folders of functions, that give a number of their own, also where a tensor stands for their argument
_OWN = frozenset(f"builtins.{name}" for name in ("bool", "len", "print", "str", "range"))
_OWN_FOLDERS = ("torch", "math")
#: builtins that keep none of their numbers, and give one of them back, or what may be its very tensor
_GIVE_BACK = frozenset(f"builtins.{name}" for name in ("int", "float", "round", "abs", "max", "min"))


def is_held(facts: FunctionFacts, name: str) -> bool:
    """May something that is no local name hold the very object that a name has: a list, or who is called?"""
    for node in nodes_in(facts.function):
        if not isinstance(node, ast.Name) or node.id != name:
            continue
        if _gives_on(facts, node) if isinstance(node.ctx, ast.Load) else _takes_over(facts, node):
            return True
    return False


def _gives_on(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does something else get the very object of an expression? `handed_on` sees to names."""
    match parent := facts.parent(node):
        case ast.UnaryOp(op=ast.UAdd()) | ast.BoolOp() | ast.NamedExpr():
            return _gives_on(facts, parent)
        case ast.IfExp(test=test):
            return test is not node and _gives_on(facts, parent)
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.FormattedValue() | ast.AugAssign() | ast.Expr():
            return False
        case ast.If() | ast.While() | ast.Assert() | ast.Attribute() | ast.Slice() | ast.Assign() | ast.AnnAssign():
            return False
        case ast.Subscript(slice=index):
            return index is not node
        case ast.Return():
            scopes = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Try)
            return next((a for a in facts.ancestors(parent) if isinstance(a, scopes)), None) is not facts.function
        case ast.Call(func=called) if qualified(facts, called) in _GIVE_BACK:
            return _gives_on(facts, parent)
        case ast.Call():
            return not _is_own(facts, parent)
    return True


def _takes_over(facts: FunctionFacts, target: ast.Name) -> bool:
    """Is a name bound to an object that a list or another object may have?"""
    match facts.parent(target):
        case ast.AugAssign():
            return False
        case ast.Assign(value=value) | ast.AnnAssign(value=ast.expr() as value) | ast.NamedExpr(value=value):
            return _is_of_others(facts, value)
        case ast.Tuple(elts=targets) as pair:
            match facts.parent(pair):
                case ast.Assign(value=ast.Tuple(elts=values)) if len(values) == len(targets):
                    starred = any(isinstance(e, ast.Starred) for e in (*values, *targets))
                    return starred or _is_of_others(facts, values[targets.index(target)])
    return True


def _is_of_others(facts: FunctionFacts, value: ast.expr) -> bool:
    match value:
        case ast.BinOp() | ast.UnaryOp() | ast.Compare() | ast.Constant() | ast.Name():
            return False
        case ast.IfExp(body=body, orelse=orelse):
            return _is_of_others(facts, body) or _is_of_others(facts, orelse)
        case ast.BoolOp(values=values):
            return any(_is_of_others(facts, v) for v in values)
        case ast.Call(func=ast.Attribute(attr="item")):
            return False
        case ast.Call(func=called, args=args) if qualified(facts, called) in _GIVE_BACK:
            return any(_is_of_others(facts, a) for a in args)
        case ast.Call():
            return not _is_own(facts, value)
    return True


def _is_own(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a call keep none of its arguments, and give an object of its own?"""
    name = qualified(facts, call.func) or ""
    folder, _, last = name.partition(".")
    if folder == "numpy":
        return last in NUMPY
    return name in _OWN or (folder in _OWN_FOLDERS and not name.rpartition(".")[2].startswith("as"))


#: methods whose result has the tensor's dtype, or is whole where the tensor is
_KEEP_DTYPE = frozenset(
    "sum prod mean amax amin max min cumsum squeeze unsqueeze view reshape flatten detach clone contiguous".split()
)


def of_its_dtype(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """A name or an attribute in the expression of a tensor that has its dtype, if that is floating, and is whole
    otherwise as well; None where none is known.
    """
    match node:
        case ast.Name() | ast.Attribute():
            return node
        case ast.UnaryOp(op=ast.USub(), operand=inner) | ast.Subscript(value=inner):
            pass
        case ast.Call(func=ast.Attribute(value=inner, attr=attr), keywords=keywords) if (
            attr in _KEEP_DTYPE and method(facts, node, attr) and all(k.arg in ("dim", "keepdim") for k in keywords)
        ):
            pass
        case ast.Call(args=[_, inner, other], keywords=[]) if (
            called(facts, node, "torch.where") and type(constant(other)) is int
        ):
            pass
        case _:
            return None
    return of_its_dtype(facts, inner) if isinstance(facts.value(inner), Tensor) else None
