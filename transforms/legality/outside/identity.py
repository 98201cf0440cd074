"""Where code asks which object a value is, and not what it holds."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@answers("memory")
def identified(facts: FunctionFacts, name: str) -> bool:
    """Does the function ask which object a name is bound to (`y is x`, `id(y)`, `{x, y}`)? A copy gives another
    answer.
    """
    return any(
        isinstance(asked, ast.Name) and asked.id == name
        for node in ast.walk(facts.function)
        for asked in _asked_which(facts, node)
    )


def _asked_which(facts: FunctionFacts, node: ast.AST) -> list[ast.expr]:
    """The expressions of which code asks which object they are; tensors are told apart so where they are hashed."""
    match node:
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot(), *_], comparators=others):
            sides = [left, *others]
            return [] if any(isinstance(side, ast.Constant) for side in sides) else sides
        case ast.Compare(left=left, ops=[ast.In() | ast.NotIn()], comparators=[of]) if not _is_tensor(facts, of):
            return [left, *_listed(of)]
        case ast.Set(elts=elements):
            return elements
        case ast.Dict(keys=keys):
            return [key for key in keys if key is not None]
        case ast.Subscript(value=of, slice=key) if not _is_tensor(facts, of):
            return [key]
        case ast.Call(func=ast.Name(id="id" | "hash" | "set" | "frozenset"), args=given):
            return [n for g in given for n in (g, *_listed(g))]
        case ast.Call(func=ast.Attribute(value=of, attr=attr), args=given) if attr in _LOOK_UP:
            return [] if _is_tensor(facts, of) else given
    return []


#: methods of containers that look for an object
_LOOK_UP = frozenset("add discard remove index count get setdefault pop".split())


def _listed(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, (ast.List, ast.Tuple)) else []


def _is_tensor(facts: FunctionFacts, node: ast.expr) -> bool:
    return isinstance(facts.value(node), Tensor)
