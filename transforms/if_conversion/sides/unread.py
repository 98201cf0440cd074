"""Results of a branch that are read under a flag alone: `if output_attentions: kept += (outputs[1],)`.

Where the flag is false nothing reads them, so that they need not be selected.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static, options
from graphmend.analysis.syntax.traversal import nodes_in, statements
from graphmend.transforms.code.liveness import LiveVariables, ended_lambdas, surely_bound

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def flag_of(facts: FunctionFacts, name: str, last: ast.stmt) -> str | None:
    """A name, known while tracing and bound no more behind `last`, under which alone `name` is read there."""
    top = _around(facts, last)
    for flag in _flags(facts.function):
        tests = [n.test for n in nodes_in(facts.function) if isinstance(n, (ast.If, ast.IfExp)) and _is(n.test, flag)]
        static = all(isinstance(v, Static) for t in tests for v in options(facts.value(t)))
        if static and not _is_stored_from(facts, flag, top) and name not in _alive_without(facts, flag, last):
            return flag
    return None


def first_bound_in_loop(facts: FunctionFacts, name: str, statement: ast.stmt) -> ast.stmt | None:
    """The statement, a loop mostly, in front of which None may be put into a name that is not bound there yet."""
    top = _around(facts, statement)
    if name in surely_bound(facts, statement):
        return None
    body = facts.function.body
    before = (n for s in body[: body.index(top)] for n in nodes_in(s))
    bound = any(isinstance(n, ast.Name) and n.id == name for n in before)
    given = any(isinstance(n, ast.arg) and n.arg == name for n in nodes_in(facts.function.args))
    return None if bound or given else top


def _around(facts: FunctionFacts, statement: ast.stmt) -> ast.stmt:
    """The statement of the function's own body that one stands in."""
    return next(s for s in facts.function.body if any(n is statement for n in nodes_in(s)))


def _is(test: ast.expr, flag: str) -> bool:
    return isinstance(test, ast.Name) and test.id == flag


def _is_stored_from(facts: FunctionFacts, flag: str, top: ast.stmt) -> bool:
    """Is a name bound in a statement of the function's body, or behind it, or by an inner function?"""
    body = facts.function.body
    behind = (n for s in body[body.index(top) :] for n in nodes_in(s))
    outside = (n for n in nodes_in(facts.function) if isinstance(n, (ast.Global, ast.Nonlocal)))
    stored = any(isinstance(n, ast.Name) and n.id == flag and not isinstance(n.ctx, ast.Load) for n in behind)
    return stored or any(flag in n.names for n in outside)


@lru_cache(maxsize=2)
def _flags(function: ast.AST) -> tuple[str, ...]:
    tests = (n.test for n in nodes_in(function) if isinstance(n, (ast.If, ast.IfExp)))
    return tuple(dict.fromkeys(test.id for test in tests if isinstance(test, ast.Name)))


def _alive_without(facts: FunctionFacts, flag: str, last: ast.stmt) -> frozenset[str]:
    """The names that may be read behind a statement where a flag is false."""
    place = next((i for i, s in enumerate(statements(facts.function)) if s is last), -1)
    return _live_without(facts, flag).get(place, frozenset())


@lru_cache(maxsize=8)
def _live_without(facts: FunctionFacts, flag: str) -> dict[int, frozenset[str]]:
    """By the place of each statement in the function: what is live behind it where a flag is false."""
    copy = ast.parse(ast.unparse(facts.function)).body[0]
    assert isinstance(copy, (ast.FunctionDef, ast.AsyncFunctionDef))
    places = {node: place for place, node in enumerate(statements(copy))}
    ended = ended_lambdas(facts)
    own, copied = ([n for n in ast.walk(f) if isinstance(n, ast.Lambda)] for f in (facts.function, copy))
    lambdas = {there for here, there in zip(own, copied, strict=True) if here in ended}
    body = [s for whole in copy.body for s in _listed(_Without(flag).visit(whole))]
    live = LiveVariables(body, lambdas)
    return {places[s]: names.union(live.captured) for s, names in live.after.items() if s in places}


class _Without(ast.NodeTransformer):
    """Leaves out what runs only where a flag is true."""

    def __init__(self, flag: str) -> None:
        self._flag = flag

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not _is(node.test, self._flag):
            return node
        return node.orelse or [ast.copy_location(ast.Pass(), node)]

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        return node.orelse if _is(node.test, self._flag) else node


def _listed(found: ast.AST | list[ast.stmt]) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found] if isinstance(found, ast.stmt) else []
