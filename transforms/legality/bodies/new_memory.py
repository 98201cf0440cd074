"""Which names of a function stand for memory that the call itself has made, in front of each of its statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import parameters, writes
from graphmend.transforms.legality.operations import aliases, flags

_Names = frozenset[str]
#: operators that join or repeat tuples and lists, too
_JOIN = (ast.Add, ast.Mult)
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def made_before(body: Sequence[ast.stmt], is_new: Callable[[ast.expr], bool | None]) -> dict[ast.stmt, frozenset[str]]:
    """The names by statement; those of inner functions are not looked at. `is_new` says of an expression whether it
    gives a tensor or a number that nothing else has.
    """
    flow = _Flow(body, is_new)
    flow.run(body, frozenset())
    return flow.before


def returns_new(function: ast.AST) -> bool:
    """Does a function return nothing but what it has computed last, by arithmetic that tuples do not have?"""
    if not isinstance(function, ast.FunctionDef):
        return False

    def is_new(value: ast.expr) -> bool:
        return isinstance(value, (ast.BinOp, ast.Compare)) and not isinstance(getattr(value, "op", None), _JOIN)

    made = made_before(function.body, is_new)
    inner = {n for f in nodes_in(function) if isinstance(f, _INNER) and f is not function for n in nodes_in(f)}
    returned = [n for n in nodes_in(function) if isinstance(n, ast.Return) and n not in inner]
    return bool(returned) and all(
        r.value is not None
        and (is_new(r.value) or (isinstance(r.value, ast.Name) and r.value.id in made.get(r, frozenset())))
        for r in returned
    )


class _Flow:
    """One pass in the order in which the statements run."""

    def __init__(self, body: Sequence[ast.stmt], is_new: Callable[[ast.expr], bool | None]) -> None:
        self.before: dict[ast.stmt, _Names] = {}
        self._is_new = is_new
        self._hidden: set[str] = set()
        """Names that mean something else in a part of an expression, or that an inner function may bind again."""
        for node in (n for statement in body for n in nodes_in(statement)):
            if isinstance(node, ast.comprehension):
                self._hidden |= writes(node.target)
            elif isinstance(node, _INNER):
                inner = [node.body] if isinstance(node, ast.Lambda) else node.body
                self._hidden |= {*parameters(node)} | writes(*inner)

    def run(self, block: Sequence[ast.stmt], names: _Names) -> _Names | None:
        """The names behind a block; None where nothing runs behind it."""
        after: _Names | None = names
        for statement in block:
            if after is None:
                break
            self.before[statement] = after
            after = self._behind(statement, after)
        return after

    def _behind(self, statement: ast.stmt, names: _Names) -> _Names | None:
        left = names - writes(statement)
        match statement:
            case ast.If(body=body, orelse=orelse):
                sides = [side for side in (self.run(body, names), self.run(orelse, names)) if side is not None]
                return frozenset.intersection(*sides) if sides else None
            case ast.With(body=body):  # which may go on behind an exception in it
                after = self.run(body, names)
                return None if after is None else names & after
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                return None
            case ast.Assign(targets=targets, value=value) if all(isinstance(t, ast.Name) for t in targets):
                return self._bound(left, writes(*targets) if self._makes(value, names) else frozenset())
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                return self._bound(left, {name} if self._makes(value, names) else frozenset())
            case ast.AugAssign(target=ast.Name(id=name)) if name in names:
                return left | {name}
        for block in ("body", "orelse", "finalbody"):
            self.run(getattr(statement, block, []) if not isinstance(statement, (*_INNER, ast.ClassDef)) else [], left)
        for case in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            self.run(case.body, left)
        return left

    def _bound(self, left: _Names, names: set[str] | _Names) -> _Names:
        return left | (names - self._hidden)

    def _makes(self, value: ast.expr, names: _Names) -> bool:
        match value:
            case ast.Name(id=name):
                return name in names
            case ast.IfExp(body=body, orelse=orelse):
                return self._makes(body, names) and self._makes(orelse, names)
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in aliases.VIEWS or flags.is_in_place(
                attr
            ):
                return self._makes(inner, names)
        return bool(self._is_new(value))
