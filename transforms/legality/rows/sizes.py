"""How large a tensor must be, as what is added or stored at the places in it says: there sizes must be equal."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import parameters, stored
from graphmend.transforms.code.qualified_names import constant, is_tensor, number_type, qualified
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.operations import rowwise
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@answers("shapes")
def met_size(facts: FunctionFacts, node: ast.expr) -> ast.Name | None:
    """The tensor whose first dimension has the size of the value of an expression of one dimension, whenever that is
    computed; it can be asked where the expression stands.
    """
    if not _always(facts, node):
        return None
    return next((source for source in _met(facts, node, set()) if _can_be_asked(facts, source)), None)


def _met(facts: FunctionFacts, node: ast.expr, seen: set[str]) -> Iterator[ast.Name]:
    """From a value of one dimension to what it meets."""
    value = facts.value(node)
    if not isinstance(value, Tensor) or value.rank != 1:
        return
    parent = facts.parent(node)
    match parent:
        case ast.BinOp(left=left, right=right):
            other = right if left is node else left
            if number_type(facts, other) is not None:  # a tensor could repeat it
                yield from _met(facts, parent, seen)
        case ast.UnaryOp():
            yield from _met(facts, parent, seen)
        case ast.Subscript(value=of, slice=index) if index is node and is_tensor(facts, of):
            if value.dtype in ("int64", "int32"):  # not a mask
                yield from _met(facts, parent, seen)
        case ast.Attribute(attr=attr) if isinstance(call := facts.parent(parent), ast.Call) and call.func is parent:
            if attr in rowwise.EACH and not call.args and not call.keywords:
                yield from _met(facts, call, seen)
        case ast.keyword() if isinstance(call := facts.parent(parent), ast.Call):
            yield from _given_to(facts, call, node, seen)
        case ast.Call():
            yield from _given_to(facts, parent, node, seen)
        case ast.Assign(targets=[ast.Name(id=name)]) if name not in seen and len(bindings(facts).get(name, [])) == 1:
            if name in parameters(facts.function):
                return
            for load in nodes_in(facts.function):
                if isinstance(load, ast.Name) and load.id == name and isinstance(load.ctx, ast.Load):
                    yield from _met(facts, load, seen | {name})


#: they add to, or store at, the places that they are given an element, or a row, for each. `scatter_add` is none of
#: them: it takes more than there are places
_AT_PLACES = frozenset(["index_add", "index_add_", "index_copy", "index_copy_"])


def _given_to(facts: FunctionFacts, call: ast.Call, node: ast.expr, seen: set[str]) -> Iterator[ast.Name]:
    """A value that is an argument."""
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    places = call.args if folder == "torch.Tensor" else call.args[1:]
    given = dict(zip(["dim", "index", "source"], places, strict=False))
    given |= {k.arg: k.value for k in call.keywords if k.arg}
    at = folder in ("torch", "torch.Tensor") and given.get("index") is node and constant(given.get("dim")) == 0
    if at and last in _AT_PLACES:
        source = given.get("source")
        value = facts.value(source) if source is not None else None
        if isinstance(source, ast.Name) and isinstance(value, Tensor) and value.rank and _always(facts, node):
            yield source
    elif (at and last == "index_select") or (
        folder in known.FUNCTIONAL and last in rowwise.EACH and call.args == [node] and not call.keywords
    ):
        yield from _met(facts, call, seen)


_MAYBE = (ast.IfExp, ast.BoolOp, ast.Compare, ast.Lambda, ast.comprehension, ast.NamedExpr)
_MAYBE_LISTS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await)


def _always(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression evaluated whenever the statement of the finding is, and behind it?"""
    block = facts.body_of(facts.statement)
    at = block.index(facts.statement)
    for above in facts.ancestors(node):
        if isinstance(above, ast.stmt):
            if isinstance(above, (ast.If, ast.While, ast.For)) or above not in block[at:]:
                return False
            between = block[at : block.index(above)]
            return not any(isinstance(n, _LEAVES) for one in between for n in nodes_in(one))
        if isinstance(above, (*_MAYBE, *_MAYBE_LISTS)):
            return False
    return False


def _can_be_asked(facts: FunctionFacts, tensor: ast.Name) -> bool:
    """Is a name bound once, before the statement of the finding, and so what it is bound to where it is met?"""
    times = len(bindings(facts).get(tensor.id, []))
    if times != (0 if tensor.id in parameters(facts.function) else 1):
        return False
    changing = [facts.statement, *(a for a in facts.ancestors(facts.statement) if isinstance(a, (ast.For, ast.While)))]
    return tensor.id not in stored(changing) and tensor.id in facts.before(facts.statement)
