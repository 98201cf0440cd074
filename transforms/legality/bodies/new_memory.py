"""Which names of a function stand for memory that the call itself has made, in front of each of its statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from enum import Enum, auto

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import parameters, writes
from graphmend.transforms.legality.operations import aliases, flags

_Names = frozenset[str]
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


def made_before(body: Sequence[ast.stmt], is_new: Callable[[ast.expr], bool | None]) -> dict[ast.stmt, frozenset[str]]:
    """The names by statement; those of inner functions are not looked at. `is_new` says of an expression whether it
    gives a tensor or a number that nothing else has.
    """
    flow = _Flow(body, is_new)
    flow.run(body, frozenset())
    return flow.before


class Returned(Enum):
    """What a function returns, where that is a tensor."""

    ALONE = auto()
    """Each `return` computes it, so that nothing else has it."""
    MADE = auto()
    """The call has made it, and may have kept it, or given it away."""
    ANY = auto()


def returned(
    function: ast.FunctionDef,
    is_new: Callable[[ast.expr], bool | None],
    passes_on: Callable[[ast.expr], ast.expr | None],
    computes: Callable[[ast.expr], bool],
) -> Returned:
    """What all `return` statements of a function give; `passes_on`: the argument that a call may give back; `computes`:
    is what is new an operation by itself?
    """
    flow = _Flow(function.body, is_new, passes_on)
    flow.run(function.body, frozenset())
    inner = {n for f in nodes_in(function) if isinstance(f, _INNER) and f is not function for n in nodes_in(f)}
    values = [(n, n.value) for n in nodes_in(function) if isinstance(n, ast.Return) and n not in inner]
    if not values:
        return Returned.ANY
    if all(value is not None and computes(value) and is_new(value) for _, value in values):
        return Returned.ALONE
    made = all(value is not None and flow.makes(value, flow.before.get(at, frozenset())) for at, value in values)
    return Returned.MADE if made else Returned.ANY


def _given_another(statement: ast.stmt) -> set[str]:
    """The names of tensors that a statement gives other memory."""
    found = set()
    for node in nodes_in(statement):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="set_")):
                found.add(name)
            case ast.Attribute(value=ast.Name(id=name), attr="data", ctx=ast.Store()):
                found.add(name)
    return found


class _Flow:
    """One pass in the order in which the statements run."""

    def __init__(
        self,
        body: Sequence[ast.stmt],
        is_new: Callable[[ast.expr], bool | None],
        passes_on: Callable[[ast.expr], ast.expr | None] = lambda _: None,
    ) -> None:
        self.before: dict[ast.stmt, _Names] = {}
        self._is_new, self._passes_on = is_new, passes_on
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
        left = names - writes(statement) - _given_another(statement)
        match statement:
            case ast.If(test=test, body=body, orelse=orelse):
                names = names - writes(test)
                sides = [side for side in (self.run(body, names), self.run(orelse, names)) if side is not None]
                return frozenset.intersection(*sides) if sides else None
            case ast.With(items=items, body=body):  # which may go on behind an exception in it
                names = names - writes(*items)
                after = self.run(body, names)
                return None if after is None else names & after
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                return None
            case ast.Assign(targets=targets, value=value) if all(isinstance(t, ast.Name) for t in targets):
                return self._bound(left, writes(*targets) if self.makes(value, names) else frozenset())
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                return self._bound(left, {name} if self.makes(value, names) else frozenset())
            case ast.AugAssign(target=ast.Name(id=name)) if name in names:
                return left | {name}
        for block in ("body", "orelse", "finalbody"):
            self.run(getattr(statement, block, []) if not isinstance(statement, (*_INNER, ast.ClassDef)) else [], left)
        for case in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            self.run(case.body, left)
        return left

    def _bound(self, left: _Names, names: set[str] | _Names) -> _Names:
        return left | (names - self._hidden)

    def makes(self, value: ast.expr, names: _Names) -> bool:
        match value:
            case ast.Name(id=name):
                return name in names
            case ast.IfExp(body=body, orelse=orelse):
                return self.makes(body, names) and self.makes(orelse, names)
            case ast.Call(func=ast.Attribute(attr="set_")):
                return False
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in aliases.VIEWS or flags.is_in_place(
                attr
            ):
                return self.makes(inner, names)
        if (given := self._passes_on(value)) is not None:
            return self.makes(given, names)
        return bool(self._is_new(value))
