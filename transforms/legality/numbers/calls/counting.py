"""Numbers that are counted in (`s += value`), which a tensor is in place: what else holds it would count on."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, cast

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.arithmetic import (
    NeedsPythonNumberError,
    counted_anew,
    handed_on,
    is_held,
    number_of,
)
from graphmend.transforms.legality.numbers.calls.read_elsewhere import ReadElsewhere

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Counting(ReadElsewhere):
    """Follows a number through what counts in it."""

    _restates: bool = False
    """May `s += value` be written as `s = s + value`?"""

    def __init__(self, facts: FunctionFacts, *, rewrites: bool = False) -> None:
        super().__init__(facts, rewrites=rewrites)
        self._handed: list[frozenset[str]] = []
        self._added_to: dict[ast.AugAssign, Hashable] = {}

    @abstractmethod
    def _name(self, name: str, dtype: Hashable, bound: ast.expr | None = None) -> None: ...

    def _added(self, node: ast.AugAssign, dtype: Hashable) -> None:
        """`target += s`."""
        target, value = node.target, self.facts.value(node.target)
        name = target.id if isinstance(target, ast.Name) else None
        if name is not None:
            value = self.facts.before(node).get(name, value)
        elif isinstance(target, ast.Subscript) and isinstance(of := self.facts.value(target.value), Tensor):
            value = Tensor(of.origin, None, of.dtype)
        if isinstance(value, Tensor) and not value.ndarray:
            self._changes(value, dtype, type(node.op))
        elif name is not None:
            self._falls(node, dtype)
            self._added_to[node] = found = self._combined(dtype, node.op, target, left=False, known=value)
            self._name(name, found)
        elif isinstance(target, ast.Attribute) and self._restates:
            self._falls(node, dtype)
            self.counterparts[cast("ast.expr", node)] = counted_anew(self.facts, node)
            self._outlives(target, self._combined(dtype, node.op, target, left=False, known=value))
        else:
            raise NeedsPythonNumberError(f"`{shortened(node)}` counts in a Python number that outlives the region")

    def _anew_or_refused(self, node: ast.AugAssign) -> None:
        if not self._restates:
            raise NeedsPythonNumberError(f"`{shortened(node)}` would change the tensor in place")
        self.counterparts[cast("ast.expr", node)] = counted_anew(self.facts, node)

    def _counts(self, node: ast.AugAssign, dtype: Hashable) -> None:
        """`s += value`, in place once `s` is a tensor."""
        self._falls(node, dtype)
        value, kind = self.facts.value(node.value), dtype_kind(dtype)
        if isinstance(value, Tensor) and not (value.rank == 0 and value.dtype == dtype):
            raise NeedsPythonNumberError(f"`{shortened(node)}` makes a tensor of a number")
        whole = not isinstance(node.op, ast.Div) and number_of(self.facts, node.value) in ("bool", "int")
        if kind in ("int", "bool") and not whole:
            raise NeedsPythonNumberError(f"`{shortened(node)}` makes another number of a whole one")
        if kind is None and not whole:
            self.differences.append(Difference("exception", f"`{shortened(node)}` raises for a whole number"))
        self._added_to[node] = self._combined(dtype, node.op, node.value, left=True)

    def _hand(self, node: ast.expr, targets: list[ast.expr]) -> None:
        """A tensor that is given a name has one more: what is added to one of them is added to all."""
        others = {t.id if isinstance(t, ast.Name) else "" for t in targets}
        names = handed_on(self.facts, node)
        if names or len(targets) > 1:
            self._handed.append(frozenset(names | others))

    def _check_names(self) -> None:
        """What something else holds as well is counted anew, not in place."""
        self._check_seen()
        done: set[ast.AugAssign] = set()
        while (node := next((n for n in self._added_to if n not in done), None)) is not None:
            done, name = {*done, node}, node.target.id if isinstance(node.target, ast.Name) else ""
            if node in self._anew or not (any(name in n for n in self._handed) or is_held(self.facts, name)):
                continue
            if not self._restates:
                raise NeedsPythonNumberError(f"`{name}` is counted in, and something else holds it too")
            self.counterparts[cast("ast.expr", node)] = counted_anew(self.facts, node)
            self._name(name, self._added_to[node])
