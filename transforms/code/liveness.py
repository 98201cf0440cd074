"""Which names a piece of code reads and binds, which are alive behind a statement, and which are still free. No
values here.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def reads(*nodes: ast.AST) -> set[str]:
    """Names that are read anywhere in `nodes`, nested functions included."""
    found = {n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return found | {
        n.target.id
        for node in nodes
        for n in ast.walk(node)
        if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)
    }


def writes(*nodes: ast.AST) -> set[str]:
    """Names that `nodes` bind or delete in the scope that they stand in."""
    return {name for node in nodes for name, _ in bindings(node)}


def stored(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that are assigned anywhere in statements."""
    return {n.id for s in statements for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def bindings(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """The names that `node` binds or deletes in the scope that it stands in, each with what binds it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        yield node.id, node
    elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield node.name, node
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield from (((a.asname or a.name).partition(".")[0], node) for a in node.names)
    elif (isinstance(node, ast.ExceptHandler) and node.name) or (
        isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name
    ):
        yield node.name, node
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest, node
    if isinstance(node, _SCOPES):
        return
    for child in ast.iter_child_nodes(node):
        yield from bindings(child)


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    a = function.args
    every = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]
    return [arg.arg for arg in every]


def locals_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that are local to a function."""
    outside = {n for s in ast.walk(function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    return ({*parameters(function)} | writes(*function.body)) - outside


def bound_anywhere(facts: FunctionFacts, name: str) -> bool:
    """Does the function, the module or Python itself bind a name?"""
    tree = facts.source.tree
    known = {*facts.names} | locals_of(facts.function) | (writes(*tree.body) if tree is not None else set())
    return name in known or hasattr(builtins, name)


def surely_bound(facts: FunctionFacts, node: ast.AST) -> set[str]:
    """Local names that are bound on every path to a node."""
    found = {*parameters(facts.function)}
    child = node
    for above in facts.ancestors(node):
        for name in ("body", "orelse", "finalbody", "handlers"):
            block = getattr(above, name, ())
            if isinstance(block, list) and child in block:
                found |= (
                    {n for s in block[: block.index(child)] for n in _surely_binds([s])}
                    if name != "handlers"
                    else set()
                )
                entered = name == "body" and isinstance(above, (ast.For, ast.AsyncFor))
                found |= writes(above.target) if entered and isinstance(above, (ast.For, ast.AsyncFor)) else set()
        if isinstance(above, (ast.With, ast.AsyncWith)):
            found |= {n for i in above.items if i.optional_vars is not None for n in writes(i.optional_vars)}
        if isinstance(above, ast.ExceptHandler) and above.name:
            found.add(above.name)
        if above is facts.function:
            break
        child = above
    deleted = {n.id for n in ast.walk(facts.function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Del)}
    return found - deleted


def _surely_binds(statements: list[ast.stmt]) -> set[str]:
    """Names that statements bind on every path through them."""
    found: set[str] = set()
    for statement in statements:
        match statement:
            case ast.If(body=body, orelse=orelse):
                sides = [_surely_binds(side) for side in (body, orelse) if not (side and isinstance(side[-1], _LEAVES))]
                found |= set.intersection(*sides) if sides else set()
                found |= writes(statement.test)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=last):
                ways = [h.body for h in handlers if not isinstance(h.body[-1], _LEAVES)]
                found |= set.intersection(_surely_binds([*body, *orelse]), *map(_surely_binds, ways)) | _surely_binds(
                    last
                )
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                found |= _surely_binds(body) | {n for i in items for n in writes(i)}
            case ast.For() | ast.AsyncFor() | ast.While() | ast.Match():
                pass
            case _:
                found |= writes(statement)
    return found


@answers("order")
def alive(facts: FunctionFacts, name: str, last: ast.stmt) -> bool:
    """May `name` be read after `last`? Loops around it count, and functions that capture the name."""
    reads_ = _reads_of(facts)
    if name in reads_.captured:
        return True
    places = reads_.places.get(name, ())
    begin, end = (last.lineno, last.col_offset), _end(last)
    if any(place > end for place in places):
        return True
    loops = [a for a in facts.ancestors(last) if isinstance(a, (ast.For, ast.AsyncFor, ast.While))]
    if not loops:
        return False
    around = (loops[-1].lineno, loops[-1].col_offset)
    return any(around <= place < begin for place in places)


class _Reads(NamedTuple):
    captured: frozenset[str]
    """Names that an inner function reads, or that are not local."""
    places: dict[str, list[tuple[int, int]]]
    """Where each name is read."""


@lru_cache(maxsize=1)
def _reads_of(facts: FunctionFacts) -> _Reads:
    captured: set[str] = set()
    places: dict[str, list[tuple[int, int]]] = {}
    for node in ast.walk(facts.function):
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            captured |= {*node.names}
        elif isinstance(node, _SCOPES) and node is not facts.function:
            captured |= reads(node)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            places.setdefault(node.id, []).append((node.lineno, node.col_offset))
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            places.setdefault(node.target.id, []).append((node.lineno, node.col_offset))
    return _Reads(frozenset(captured), places)


def _end(node: ast.stmt) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


@answers("names")
def fresh(facts: FunctionFacts, wanted: str, taken: Iterable[str] = ()) -> str:
    """`wanted`, or `wanted_2`, ...: the first that nothing in the function, the module or Python itself uses."""
    used, others = _used(facts), {*taken}
    name, number = wanted, 2
    while name in used or name in others:
        name, number = f"{wanted}_{number}", number + 1
    return name


@lru_cache(maxsize=1)
def _used(facts: FunctionFacts) -> frozenset[str]:
    """Names that mean something in a function; the rewrites of one finding ask again and again."""
    used = {n.id for n in ast.walk(facts.function) if isinstance(n, ast.Name)}
    used |= {a.arg for a in ast.walk(facts.function) if isinstance(a, ast.arg)}
    used |= {*facts.names, *dir(builtins)} | writes(*facts.function.body)
    if facts.source.tree is not None:
        used |= {n.id for n in ast.walk(facts.source.tree) if isinstance(n, ast.Name)}
    return frozenset(used)
