"""Does a function look as if it changed in place what it was given? Other functions that it calls are not looked at."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import writes

#: what makes a tensor that nothing else has
MAKERS = frozenset("zeros ones full empty zeros_like ones_like full_like empty_like clone arange".split())


@lru_cache(maxsize=256)
def changes_in_place(function: ast.AST) -> bool:
    """Is there something in a function that looks like a change in place, of more than a tensor made just before?"""
    own = {*_own_stores(getattr(function, "body", ()))}
    for node in nodes_in(function):
        match node:
            case ast.AugAssign() | ast.Subscript(ctx=ast.Store() | ast.Del()) if node not in own:
                return True
            case ast.Call(func=ast.Attribute(attr=attr)) if attr.endswith("_") and not attr.endswith("__"):
                return True
            case ast.keyword(arg="out" | "inplace"):
                return True
    return False


def makes_tensor(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in MAKERS


def _own_stores(body: object) -> Iterator[ast.AST]:
    """The stores at the top of a function into what a name was bound to there, by what makes a tensor."""
    made: set[str] = set()
    statements: Iterable[ast.stmt] = body if isinstance(body, list) else ()
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                (made.add if makes_tensor(value) else made.discard)(name)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as target]) if name in made:
                yield target
            case _:
                made -= writes(statement)
