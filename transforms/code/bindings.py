"""What the names of a function are bound to, as expressions. No values here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Bound(NamedTuple):
    value: ast.expr | None
    """What a name is bound to; None where that is not written as an expression."""
    part: bool = False
    """Is it a part of it: an item, an element of what a loop runs over?"""


@lru_cache(maxsize=2)
def bindings(facts: FunctionFacts) -> dict[str, list[Bound]]:
    """Everything that each local name is bound to, anywhere in the function."""
    found: dict[str, list[Bound]] = {}
    for node in ast.walk(facts.function):
        for name, bound in _binds(node):
            found.setdefault(name, []).append(bound)
    return found


def _binds(node: ast.AST) -> Iterator[tuple[str, Bound]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _unpacked(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, Bound(value)
        case ast.NamedExpr(target=ast.Name(id=name), value=value):
            yield name, Bound(value)
        case ast.For(target=target, iter=value) | ast.AsyncFor(target=target, iter=value):
            for name in _names_in(target):
                yield name, Bound(value, part=True)
        case ast.comprehension(target=target, iter=value):
            for name in _names_in(target):
                yield name, Bound(value, part=True)
        case ast.withitem(optional_vars=ast.expr() as target):
            for name in _names_in(target):
                yield name, Bound(None)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name, Bound(None)
        case ast.MatchMapping(rest=str(name)):
            yield name, Bound(None)


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Bound]]:
    if isinstance(target, ast.Name):
        yield target.id, Bound(value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        same = isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts)
        starred = any(isinstance(e, ast.Starred) for e in target.elts)
        if same and not starred and isinstance(value, (ast.Tuple, ast.List)):
            for one, other in zip(target.elts, value.elts, strict=True):
                yield from _unpacked(one, other)
        else:
            for name in _names_in(target):
                yield name, Bound(value, part=True)


def _names_in(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
