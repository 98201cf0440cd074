"""Code that changes nothing where a mask picks nothing: stores under it, also in functions that are given it."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from graphmend.analysis.lattice.values import UNKNOWN
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import is_tensor
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.neutral.binding import Binding
from graphmend.transforms.legality.neutral.submodules import called_method
from graphmend.transforms.legality.neutral.uniform import Uniform, enter, entered
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.questions import answers

_DEEPEST = 4
_UNDER_MASK = ("masked_scatter_", "masked_fill_")


class Idle:
    """Statements under the assumption that masks pick nothing."""

    def __init__(self, inside: Uniform, depth: int = 0) -> None:
        self.facts, self._inside, self._depth = inside.facts, inside, depth
        self.differences: list[Difference] = []
        self.bound: set[str] = set()
        """The names that the statements bind."""

    @property
    def taken(self) -> list[Difference]:
        """What is taken for granted of the masks."""
        return self._inside.taken

    @answers("domain")
    def busy(self, statements: Iterable[ast.stmt]) -> ast.stmt | None:
        """The first statement that may change something; None where there is none."""
        return next((s for s in statements if not self._idle(s)), None)

    def _idle(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Return(value=None | ast.Constant(value=None)):
                return self._depth > 0
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.bound.add(name)
                return self._computes(value)
            case ast.Assign(targets=[ast.Subscript(value=tensor, slice=on)], value=value):
                return self._picks_nothing(tensor, on) and self._computes(tensor, value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=tensor, attr=attr), args=[on, value])) if (
                attr in _UNDER_MASK
            ):
                return self._picks_nothing(tensor, on) and self._computes(tensor, value)
            case ast.Expr(value=ast.Call() as call):
                return self._runs(call)
            case ast.If(test=test, body=body, orelse=orelse):
                return self._computes(test) and self.busy((*body, *orelse)) is None
        return False

    def _picks_nothing(self, tensor: ast.expr, on: ast.expr) -> bool:
        """Is it a tensor, which takes a mask? A list takes a bool for a place, and a dictionary for a key."""
        return is_tensor(self.facts, tensor) and self._inside.truth(on) is False

    def _computes(self, *nodes: ast.expr) -> bool:
        self.differences += may_raise(self.facts, *nodes)
        return not effects(self.facts, *nodes)

    def _runs(self, call: ast.Call) -> bool:
        """Does a function of the file change nothing, given what it is given?"""
        value, entering = self.facts.value(call.func), None
        if isinstance(value, Function):
            entering = enter(self.facts, call, value)
        elif value is UNKNOWN and isinstance(method := called_method(self.facts, call.func), ast.FunctionDef):
            entering = entered(self.facts, call, method, bound=True)
        if entering is None or self._depth > _DEEPEST or not self._computes(*entering[1].values()):
            return False
        facts, given = entering
        elements = {Binding(name, facts.function): self._inside.of(v) for name, v in given.items()}
        if facts.function.decorator_list or not any(e is False for e in elements.values()):
            return False
        known = {b: e for b, e in elements.items() if e is not None}
        inner = Idle(Uniform(facts, known, judged={*nodes_in(facts.function)}), self._depth + 1)
        if inner.busy(facts.function.body) is not None:
            return False
        says = f"`{shortened(call.func)}` is called, and taken to be the function in sight, overridden nowhere else"
        self.differences += [*inner.differences, *inner.taken, Difference("callers", says)]
        return True
