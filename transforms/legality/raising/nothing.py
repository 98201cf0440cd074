"""Names that are None until a loop has bound them to a tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Static, Tensor, Value, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import has_own_names
from graphmend.transforms.code.qualified_names import NUMBER_TYPES
from graphmend.transforms.legality.context import observed
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@answers("totality")
def but_for_none(facts: FunctionFacts, whole: ast.stmt, name: str, value: Value) -> Tensor | None:
    """The tensor that a name has from the first time on that a loop binds it. Whatever else reads the name raises for
    None, so that nothing else comes of a branch that was never taken.
    """
    loops = [a for a in facts.ancestors(whole) if isinstance(a, (ast.For, ast.While))]
    tensors = [o for o in options(value) if isinstance(o, Tensor)]
    nothing = [o for o in options(value) if isinstance(o, Const) and o.value is None]
    if not loops or len(tensors) != 1 or not nothing or len([*options(value)]) != 2:
        return None
    names = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
    return tensors[0] if all(isinstance(n.ctx, ast.Store) or _raises_for_none(facts, whole, n) for n in names) else None


def _raises_for_none(facts: FunctionFacts, whole: ast.stmt, node: ast.Name) -> bool:
    """Does a read behind a statement raise for None, where nothing in the function sees that it does?"""
    above = [*facts.ancestors(node)]
    statement = next(a for a in above if isinstance(a, ast.stmt))
    inner = has_own_names(facts, node) or next((a for a in above if isinstance(a, _SCOPES)), None) is not facts.function
    if whole in above or inner or observed(facts, statement):
        return False
    match facts.parent(node):
        case ast.BinOp(left=left, right=right):
            other = facts.value(right if node is left else left)
            return isinstance(other, Tensor) or (isinstance(other, Static) and other.type in NUMBER_TYPES)
        case ast.Attribute(attr=attr):
            return not hasattr(None, attr)
        case ast.UnaryOp(op=op):
            return not isinstance(op, ast.Not)
        case ast.Subscript(value=of):
            return of is node
    return False
