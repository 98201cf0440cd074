"""Where what an object holds may be another module than its class says."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import NamedTuple

from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in


@lru_cache(maxsize=256)
def is_made_by_argument(owner: ClassInfo, attr: str) -> bool:
    """Is an attribute given what a parameter makes, of which a default is only one: `self.act = act()`?"""
    for cls in mro(owner):
        for method, _, value in cls.assigned.get(attr, ()):
            given = {p.arg for p in method.parameters[1:]}
            called = (n.func for n in nodes_in(value) if isinstance(n, ast.Call))
            if any(isinstance(n, ast.Name) and n.id in given for n in [value, *called]):
                return True
    return False


class _Changes(NamedTuple):
    """What code of a file does to the modules that objects hold."""

    put: frozenset[str]
    """Attributes that are set from outside of the object."""
    put_any: bool
    """Any may be, or another method in the place of `forward`."""
    rearranged: frozenset[str]
    """Attributes with containers of which something is taken away, or to which something is added."""
    rearranged_any: bool


def is_put_elsewhere(attr: str, tree: ast.AST | None) -> bool:
    """May code of a file put another module in the place of an attribute, or another method in that of `forward`?"""
    changes = _changes(tree)
    return changes.put_any or attr in changes.put


def is_rearranged(attr: str, tree: ast.AST | None) -> bool:
    """May code of a file change which modules a container in an attribute holds, or what a module is?"""
    changes = _changes(tree)
    return changes.rearranged_any or attr in changes.rearranged


@lru_cache(maxsize=8)
def _changes(tree: ast.AST | None) -> _Changes:
    put, rearranged, put_any, rearranged_any = set(), set(), False, False
    for node in nodes_in(tree) if tree is not None else ():
        match node:
            case ast.Attribute(attr="forward", ctx=ast.Store()):
                put_any = True
            case ast.Attribute(attr="__class__" | "__call__", ctx=ast.Store()):
                rearranged_any = True
            case ast.Attribute(attr=name, value=of, ctx=ast.Store()):
                if not (isinstance(of, ast.Name) and of.id == "self"):
                    put.add(name)
            case ast.Attribute(attr="_modules" | "__dict__"):
                rearranged_any = True
            case ast.Call(func=ast.Attribute(attr="add_module" | "register_module" | "__setattr__")):
                put_any = True
            case ast.Call(func=ast.Name(id="setattr")):
                put_any = True
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=name), attr=method)) if method in _REARRANGE:
                rearranged.add(name)
            case ast.Subscript(value=ast.Attribute(attr=name), ctx=ast.Store() | ast.Del()):
                rearranged.add(name)
    return _Changes(frozenset(put), put_any, frozenset(rearranged), rearranged_any)


_REARRANGE = ("append", "clear", "extend", "insert", "pop", "popitem", "update")


def is_defined_twice(method: FunctionInfo) -> bool:
    """Has its file another function of its name in the same class, as in the two sides of a branch?"""
    tree = method.source.tree
    classes = (n for n in nodes_in(tree) if isinstance(n, ast.ClassDef)) if tree is not None else ()
    around = next((c for c in classes if any(n is method.node for n in c.body)), None)
    if around is None:
        return True
    inside = [n for n in nodes_in(around) if isinstance(n, ast.FunctionDef) and n.name == method.name]
    return len(inside) > 1
