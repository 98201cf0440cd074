"""Slices whose bounds are 0-d tensors, in the subscripts of tensors."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Static, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.writes.unchanged import still_made_of

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Sliced(NamedTuple):
    """A subscript with one slice whose bounds are tensors."""

    node: ast.Subscript
    part: ast.Slice
    dim: int
    """The dimension of the tensor that is sliced, below zero where it is counted from the end."""
    whole: bool
    """Do all other indices take whole dimensions?"""
    kept: bool = False
    """Do all other indices take whole dimensions, or add one behind the slice?"""


def sliced(facts: FunctionFacts, node: ast.Subscript) -> Sliced | None:
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    places = [i for i, index in enumerate(indices) if isinstance(index, ast.Slice) and by_tensor(facts, index)]
    if len(places) != 1:
        return None
    at = places[0]
    others = [index for index in indices if index is not indices[at]]
    whole = all(map(is_whole, others))
    added = [i for i, o in enumerate(indices) if isinstance(o, ast.Constant) and o.value is None]
    kept = len(added) > 0 and added[0] > at and all(is_whole(o) or isinstance(o, ast.Constant) for o in others)
    known = all(is_whole(o) or is_known(facts, o) for o in others) or kept
    part = indices[at]
    dim = at - len(indices) if any(constant(i) is ... for i in indices[:at]) else at
    if dim < 0 and added:  # the result has it at another place from the end
        return None
    return Sliced(node, part, dim, whole, whole or kept) if known and isinstance(part, ast.Slice) else None


def is_whole(index: ast.expr) -> bool:
    return constant(index) is ... or (isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None)


def by_tensor(facts: FunctionFacts, part: ast.Slice) -> bool:
    """Is a bound of a slice a 0-d tensor, and the other one too, or a whole number that is written out?"""
    bounds = [b for b in (part.lower, part.upper) if b is not None]
    tensors = [b for b in bounds if _zero_d(facts, b)]
    plain = [constant(b) for b in bounds if b not in tensors]
    return bool(tensors) and all(isinstance(p, int) and p >= 0 for p in plain)


def _zero_d(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Tensor) and not value.ndarray and value.rank in (0, None)


def is_known(facts: FunctionFacts, index: ast.expr) -> bool:
    """Is an index a whole number or a slice that is known while tracing?"""
    if isinstance(index, ast.Slice):
        return all(is_known(facts, b) for b in (index.lower, index.upper, index.step) if b is not None)
    value = facts.value(index)
    return type(constant(index)) is int or (isinstance(value, Static) and value.type == "int")


def width_of(facts: FunctionFacts, part: ast.Slice) -> ast.expr | None:
    """`w` of `n : n + w`, or of `n * w : (n + 1) * w`, where it is known while tracing. The end may have a name."""
    if isinstance(part.upper, ast.Name) and (end := still_made_of(facts, part.upper)) is not None:
        part = ast.Slice(part.lower, end, part.step)
    match part:
        case ast.Slice(lower=ast.expr() as lower, upper=ast.BinOp(op=ast.Add()) as upper):
            widths = _beside(upper, ast.unparse(lower))
        case ast.Slice(lower=ast.BinOp(op=ast.Mult()) as lower, upper=ast.BinOp(op=ast.Mult()) as upper):
            # the next part of the same width
            parts = [(w, n) for w, n in _sides(lower) for n_1 in _beside(upper, ast.unparse(w)) if _is_next(n_1, n)]
            widths = [w for w, _ in parts]
        case _:
            return None
    return next((w for w in widths if isinstance(facts.value(w), Static)), None)


def _sides(node: ast.BinOp) -> list[tuple[ast.expr, ast.expr]]:
    return [(node.left, node.right), (node.right, node.left)]


def _beside(node: ast.BinOp, text: str) -> list[ast.expr]:
    """The other operand of one that is written so."""
    return [other for one, other in _sides(node) if ast.unparse(one) == text]


def _is_next(number: ast.expr, before: ast.expr) -> bool:
    """Is a number `n + 1`?"""
    match number:
        case ast.BinOp(op=ast.Add()):
            return any(constant(one) == 1 for one in _beside(number, ast.unparse(before)))
    return False


def is_whole_number(facts: FunctionFacts, bound: ast.expr) -> bool:
    return constant(bound) is not None or kinds(facts, bound) <= {"int", "uint8"}


def fills_slice(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is `torch.arange(n)` stored into a slice, one of whose bounds is `n`, too?"""
    statement = next((a for a in facts.ancestors(call) if isinstance(a, ast.stmt)), None)
    if not isinstance(statement, ast.Assign) or len(call.args) != 1 or len(statement.targets) != 1:
        return False
    target, count = statement.targets[0], ast.unparse(call.args[0])
    slices = [n for n in nodes_in(target) if isinstance(n, ast.Slice)] if isinstance(target, ast.Subscript) else []
    bounds = [ast.unparse(b) for part in slices for b in (part.lower, part.upper) if b is not None]
    return count in bounds or f"-{count}" in bounds
