"""Operations on objects whose classes TorchDynamo models only in part: the rules are told of each."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Operation
from graphmend.analysis.lattice.external import Enumeration, ManagedContext
from graphmend.analysis.lattice.values import Container, MarkedTensor, Value

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk

#: in an environment: a dictionary from outside of the compiled function was changed
CHANGED = "<a dictionary from outside was changed>"

_SYMBOLS: dict[type[ast.operator] | type[ast.cmpop] | type[ast.unaryop], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.USub: "neg", ast.UAdd: "pos", ast.Invert: "invert",
}  # fmt: skip


def used(w: Walk, node: ast.AST, operation: str | ast.operator | ast.cmpop | ast.unaryop, *values: Value) -> None:
    """Tells the rules of an operation on the opaque ones of some values."""
    if not isinstance(node, (ast.expr, ast.stmt)):
        return
    name = operation if isinstance(operation, str) else _SYMBOLS.get(operation.__class__)
    if name is None:
        return
    if isinstance(node, ast.AugAssign):
        name += "="
    if CHANGED in w.env and name == "subscript":
        name = "subscript behind a change"
    for value in values:
        if value.opaque or name == "delete":
            w.emit(Operation, node, name, value)


def returned(w: Walk, node: ast.Return, value: Value) -> None:
    """Tells the rules of the opaque values that leave the traced function."""
    if w.session.mode.options:
        w.emit(Operation, node, "leaf return", value)
        w.emit(Operation, node, "exported", value)
    parts = value.items or () if isinstance(value, Container) and value.kind != "generator" else (value,)
    for part in parts:
        if isinstance(part, MarkedTensor) and isinstance(at := part.mark("consumed"), ast.expr):
            w.emit(Operation, at, "returned consumed", part)
        if isinstance(part, (Enumeration, ManagedContext)):
            w.emit(Operation, node, "return", part)
    used(w, node, "return", *parts)
