"""Who else sees a name's object: what is observed, escapes, or is changed in place."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@dataclass(frozen=True)
class Shares:
    """Which existing tensors a value may be, and whose memory it may share, as paths (`x`, `self.state`)."""

    same: frozenset[str] = frozenset()
    views: frozenset[str] = frozenset()
    fresh: bool = False
    """Is it a tensor that nothing else holds, for certain?"""


def shares(facts: FunctionFacts, node: ast.expr) -> Shares:
    """What a value may be, and what its memory may be a part of."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return Shares(same=frozenset({ast.unparse(node)}))
    return Shares(views=frozenset({n.id for n in ast.walk(node) if isinstance(n, ast.Name)}))


def escapes(facts: FunctionFacts, name: str) -> bool:
    """May the object that `name` is bound to be seen under another name, or be changed in place, somewhere in
    the function?
    """
    for node in ast.walk(facts.function):
        if isinstance(node, ast.Return) and node.value is not None and name in _objects(node.value):
            return True
        if isinstance(node, ast.Assign) and name in _objects(node.value):
            return True
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is(node.value, name):
            return True
        if isinstance(node, ast.Call) and _works_in_place(node, name):
            return True
    return False


def changed_in_place(facts: FunctionFacts, name: str) -> bool:
    """Is the object that `name` is bound to changed in place somewhere in the function?"""
    for node in ast.walk(facts.function):
        if isinstance(node, ast.AugAssign) and _is(node.target, name):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)) and _is(node.value, name):
            return True
        if isinstance(node, ast.Call) and _works_in_place(node, name):
            return True
    return False


def _works_in_place(call: ast.Call, name: str) -> bool:
    """`name.method_(...)`."""
    if not isinstance(call.func, ast.Attribute) or not _is(call.func.value, name):
        return False
    return call.func.attr.endswith("_") and not call.func.attr.endswith("__")


def _objects(node: ast.expr) -> set[str]:
    """Names whose very objects an expression hands on."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return {n for e in node.elts for n in _objects(e)}
    if isinstance(node, ast.Dict):
        return {n for e in node.values for n in _objects(e)}
    if isinstance(node, ast.IfExp):
        return _objects(node.body) | _objects(node.orelse)
    if isinstance(node, ast.Starred):
        return _objects(node.value)
    return set()


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
