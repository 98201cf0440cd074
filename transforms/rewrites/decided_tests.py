"""What comparisons of Python values give, where literals alone decide them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import Container, Tensor
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.operations import names as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


_COMPARES: dict[type[ast.cmpop], Callable[[Any, Any], object]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip


class _NotDecidedError(Exception):
    """What a test gives is not known."""


def decided(facts: FunctionFacts, node: ast.expr, values: Mapping[str, ast.expr]) -> bool | None:
    """What a test of names gives that stand for some values; None where that is not known."""
    try:
        return bool(_evaluated(facts, node, values))
    except (_NotDecidedError, TypeError):
        return None


def _evaluated(facts: FunctionFacts, node: ast.expr, values: Mapping[str, ast.expr]) -> object:
    match node:
        case ast.Name(id=name) if name in values:
            given = values[name]
            if constant(given) is None and not isinstance(given, ast.Constant):
                raise _NotDecidedError
            return constant(given)
        case ast.Constant(value=value):
            return value
        case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
            return tuple(_evaluated(facts, part, values) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluated(facts, operand, values)
        case ast.UnaryOp(op=ast.USub()) if constant(node) is not None:
            return constant(node)
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]
        ) if name in values and _is_something(facts, values[name]):
            return isinstance(op, ast.IsNot)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            a, b = _evaluated(facts, left, values), _evaluated(facts, right, values)
            if isinstance(op, (ast.Is, ast.IsNot)) and not any(v is None or isinstance(v, bool) for v in (a, b)):
                raise _NotDecidedError
            return _COMPARES[type(op)](a, b)
    raise _NotDecidedError


def _is_something(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a value never None: a tensor, a function, a class, a module or a tuple?"""
    value = facts.value(node)
    if isinstance(value, ExternalName):
        return value.name.rpartition(".")[0] in known.FUNCTIONAL
    made = (Tensor, Function, Class, Instance, ExternalInstance, Container)
    return isinstance(node, (ast.Lambda, ast.Tuple)) or isinstance(value, made)
