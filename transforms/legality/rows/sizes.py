"""How large a tensor must be in one dimension, as what it meets says: an operand that it is computed with element by
element, or what is added at the places that it holds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import parameters, reads, stored
from graphmend.transforms.code.qualified_names import constant, is_tensor, number_type, qualified
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.operations import rowwise
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Size(NamedTuple):
    """The size of a tensor in a dimension, which may be a number below zero."""

    tensor: ast.expr
    dim: int


@answers("shapes")
def met_size(facts: FunctionFacts, node: ast.expr, dim: int) -> Size | None:
    """What has the size that the value of an expression must have in a dimension, or one, which is repeated; it can
    be asked where the expression stands.
    """
    return next((size for size in _met(facts, node, dim, set()) if _can_be_asked(facts, size.tensor)), None)


def _met(facts: FunctionFacts, node: ast.expr, dim: int, seen: set[str]) -> Iterator[Size]:
    """From a value, whose dimension `dim` is asked about, to what it meets."""
    value = facts.value(node)
    rank = value.rank if isinstance(value, Tensor) else None
    parent = facts.parent(node)
    match parent:
        case ast.BinOp(left=left, op=op, right=right) if rank is not None and not isinstance(op, ast.MatMult):
            other = right if left is node else left
            of = facts.value(other)
            if number_type(facts, other) is not None:
                yield from _met(facts, parent, dim, seen)
            elif isinstance(of, Tensor) and of.rank is not None and is_tensor(facts, other):
                if of.rank >= rank - dim:
                    yield Size(other, dim + of.rank - rank)
                yield from _met(facts, parent, dim + max(of.rank - rank, 0), seen)
        case ast.UnaryOp():
            yield from _met(facts, parent, dim, seen)
        case ast.Subscript(value=of, slice=index) if index is node and is_tensor(facts, of):
            if rank == 1:
                yield from _met(facts, parent, 0, seen)
        case ast.Subscript(value=of, slice=ast.Tuple(elts=indices)) if of is node and dim == 0:
            if _keeps_first(indices):
                yield from _met(facts, parent, 0, seen)
        case ast.Attribute(attr=attr) if isinstance(call := facts.parent(parent), ast.Call) and call.func is parent:
            given = [constant(a) for a in call.args]
            if (attr in rowwise.EACH and not given) or (attr == "unsqueeze" and rank and given in ([-1], [rank])):
                yield from _met(facts, call, dim, seen)
        case ast.keyword() if isinstance(call := facts.parent(parent), ast.Call):
            yield from _given_to(facts, call, node, dim, seen)
        case ast.Call():
            yield from _given_to(facts, parent, node, dim, seen)
        case ast.Assign(targets=[ast.Name(id=name)]) if name not in seen and len(bindings(facts).get(name, [])) == 1:
            if name in parameters(facts.function):
                return
            for load in ast.walk(facts.function):
                if isinstance(load, ast.Name) and load.id == name and isinstance(load.ctx, ast.Load):
                    yield from _met(facts, load, dim, seen | {name})


def _keeps_first(indices: list[ast.expr]) -> bool:
    first = indices[0] if indices else None
    return isinstance(first, ast.Slice) and first.lower is None and first.upper is None and first.step is None


#: they add to, or store at, the places that they are given: by the argument that has an element, or a row, for each
_AT_PLACES = {
    "index_add": "source", "index_add_": "source", "index_copy": "source", "index_copy_": "source",
    "scatter_add": "src", "scatter_add_": "src",
}  # fmt: skip


def _given_to(facts: FunctionFacts, call: ast.Call, node: ast.expr, dim: int, seen: set[str]) -> Iterator[Size]:
    """A value that is an argument."""
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    keywords = {k.arg or "": k.value for k in call.keywords}
    if last in _AT_PLACES and folder in ("torch", "torch.Tensor"):
        names = ["dim", "index", _AT_PLACES[last]]
        places = call.args if folder == "torch.Tensor" else call.args[1:]
        given = {**dict(zip(names, places, strict=False)), **keywords}
        source = given.get(_AT_PLACES[last])
        if given.get("index") is node and dim == 0 and source is not None and constant(given.get("dim")) == 0:
            yield Size(source, 0)
    elif last == "index_select" and folder in ("torch", "torch.Tensor"):
        places = call.args if folder == "torch.Tensor" else call.args[1:]
        given = {**dict(zip(["dim", "index"], places, strict=False)), **keywords}
        if given.get("index") is node and constant(given.get("dim")) == 0:
            yield from _met(facts, call, 0, seen)
    elif folder in known.FUNCTIONAL and last in rowwise.EACH and call.args == [node]:
        yield from _met(facts, call, dim, seen)
    elif call.args == [node] and isinstance(layer := facts.value(call.func), ExternalInstance):
        yield from _met(facts, call, dim, seen) if layer.cls == "torch.nn.Embedding" else ()


@answers("order")
def _can_be_asked(facts: FunctionFacts, tensor: ast.expr) -> bool:
    """Is a tensor the same, and may it be asked, at the statement of the finding?"""
    if not repeatable(facts, tensor):
        return False
    names = reads(tensor)
    block = facts.body_of(facts.statement)
    changing = [*block[block.index(facts.statement) :]]
    changing += [a for a in facts.ancestors(facts.statement) if isinstance(a, (ast.For, ast.While))]
    bound = {*parameters(facts.function)} | stored(facts.function.body)
    return not names & stored(changing) and all(n in facts.before(facts.statement) or n not in bound for n in names)
