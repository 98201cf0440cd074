"""Special methods: operators, truth values and lengths of instances whose class defines them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.arguments import Arguments
from graphmend.analysis.lattice.values import UNKNOWN, Value
from graphmend.analysis.program.entities import Function, class_of
from graphmend.analysis.resolution.classes import find_method

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk

#: by operator, the middle of its method's name
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor", ast.LShift: "lshift",
    ast.RShift: "rshift",
}  # fmt: skip
_COMPARES: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("__eq__", "__eq__"), ast.NotEq: ("__ne__", "__ne__"), ast.Lt: ("__lt__", "__gt__"),
    ast.LtE: ("__le__", "__ge__"), ast.Gt: ("__gt__", "__lt__"), ast.GtE: ("__ge__", "__le__"),
}  # fmt: skip
_SIGNS: dict[type[ast.unaryop], str] = {ast.USub: "__neg__", ast.UAdd: "__pos__", ast.Invert: "__invert__"}
#: builtins that ask their argument's class, in the order in which its methods are tried
_BUILTINS = {
    "bool": ("__bool__", "__len__"), "len": ("__len__",), "int": ("__int__", "__index__"), "float": ("__float__",),
    "abs": ("__abs__",), "str": ("__str__", "__repr__"), "repr": ("__repr__",), "next": ("__next__",),
    "round": ("__round__",), "reversed": ("__reversed__",), "hash": ("__hash__",),
}  # fmt: skip


def call_special_method(w: Walk, value: Value, names: tuple[str, ...], args: Arguments, node: ast.AST) -> Value | None:
    """The result of the first of these methods that the value's class has; None where its source has none."""
    own = class_of(value)
    if own is None or not w.session.stack.traced:  # what is only read for its value does well without
        return None
    for name in names:
        method = find_method(w.session, own, name)
        if method is not None:
            return w.session.enter(Function(method, bound=value), args, {}, w, node)
    return None


def arithmetic(w: Walk, node: ast.AST, op: ast.operator, left: Value, right: Value) -> Value | None:
    """`left op right`."""
    name = ARITHMETIC[op.__class__]
    own = (f"__i{name}__", f"__{name}__") if isinstance(node, ast.AugAssign) else (f"__{name}__",)
    value = call_special_method(w, left, own, (right,), node)
    return call_special_method(w, right, (f"__r{name}__",), (left,), node) if value is None else value


def compared(w: Walk, node: ast.AST, op: ast.cmpop, left: Value, right: Value) -> Value | None:
    """`left < right` and the like."""
    names = _COMPARES.get(op.__class__)
    if names is None:
        return None
    value = call_special_method(w, left, names[:1], (right,), node)
    return call_special_method(w, right, names[1:], (left,), node) if value is None else value


def signed(w: Walk, node: ast.UnaryOp, value: Value) -> Value:
    """`-value` and the like."""
    answer = call_special_method(w, value, (_SIGNS[node.op.__class__],), (), node)
    return UNKNOWN if answer is None else answer


def by_builtin(w: Walk, name: str, value: Value, node: ast.AST) -> Value | None:
    """`len(value)` and the like."""
    names = _BUILTINS.get(name)
    return call_special_method(w, value, names, (), node) if names is not None else None
