"""What a file does with its containers that their values at one place do not tell: which it takes entries out of, and
which make an entry where one is read.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend.analysis.syntax.traversal import nodes_in

_TAKES_OUT = frozenset({"pop", "popitem", "popleft", "clear", "remove", "__delitem__", "__init__"})
#: methods that run where an entry is read
_READ = frozenset({"__missing__", "__getitem__"})
_DEFAULTS = ("defaultdict", "DefaultDict")


def loses_entries(tree: ast.Module | None, container: ast.expr) -> bool:
    """May something in the file take an entry out of a container: does it of what has the same last name?"""
    name = _last_name(container)
    return name is None or name in _losing(tree)


def makes_entries(tree: ast.Module | None, container: ast.expr) -> bool:
    """Does reading a key of a container write to it: is one of its last name a `defaultdict`, or of a class with a
    `__missing__` or `__getitem__`, somewhere in the file? An entry of another container goes by the name of that one.
    """
    return _outermost_name(container) in _making(tree)


@lru_cache(maxsize=4)
def _losing(tree: ast.Module | None) -> frozenset[str]:
    found: set[str | None] = set()
    for node in nodes_in(tree) if tree is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(value=owner, attr=method)) if method in _TAKES_OUT:
                found.add(_last_name(owner))
            case ast.Subscript(value=owner, ctx=ast.Del()):
                found.add(_last_name(owner))
            case ast.Subscript(value=owner, slice=ast.Slice(), ctx=ast.Store()):
                found.add(_last_name(owner))
    return frozenset(name for name in found if name is not None)


@lru_cache(maxsize=4)
def _making(tree: ast.Module | None) -> frozenset[str]:
    nodes = list(nodes_in(tree)) if tree is not None else []
    own = (n for n in nodes if isinstance(n, ast.ClassDef))
    makers = {*_DEFAULTS, *(c.name for c in own if any(getattr(s, "name", "") in _READ for s in c.body))}
    found: set[str | None] = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=targets, value=ast.Call(func=function)) if _last_name(function) in makers:
                found.update(map(_outermost_name, targets))
            case ast.AnnAssign(target=target, annotation=kind, value=value):
                if makers & {_last_name(n) for part in (kind, value) if part is not None for n in nodes_in(part)}:
                    found.add(_outermost_name(target))
            case ast.arg(arg=name, annotation=ast.expr() as kind):
                if makers & {_last_name(n) for n in nodes_in(kind)}:
                    found.add(name)
    return frozenset(name for name in found if name is not None)


def _outermost_name(node: ast.AST) -> str | None:
    while isinstance(node, ast.Subscript):
        node = node.value
    return _last_name(node)


def _last_name(node: ast.AST) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
