"""Recursive functions: the result is the least fixed point of the body.

A call of a function that is being walked has the value BOTTOM at first, so that the paths without a recursive call give
a first result; the body is walked again with that as assumption, until the result is the assumption. Summaries that
rely on the assumption about another function are provisional: they are dropped when that one is walked again or has
settled. Of functions that call each other, the one entered first iterates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.interprocedural.summary_table import SummaryTable
from graphmend.analysis.lattice.dependence import may_hold_tensor
from graphmend.analysis.lattice.values import BOTTOM, NONE, UNKNOWN, Static, Value

#: a body is walked at most this often; what has not settled then is UNKNOWN
_ROUNDS = 4


class Recursion:
    """The provisional summaries of a session."""

    def __init__(self, summaries: SummaryTable) -> None:
        self._summaries = summaries
        self._provisional: list[Hashable] = []

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """The block begins without provisional summaries."""
        outer, self._provisional = self._provisional, []
        try:
            yield
        finally:
            self._provisional = outer

    def forget(self) -> None:
        """Drop the provisional summaries."""
        for key in self._provisional:
            self._summaries.discard(key)
        self._provisional.clear()

    def settled(self, summary: FunctionSummary, key: Hashable, walk: Callable[[], Value]) -> Value:
        """The result of a summary, iterated to a fixed point. `walk` walks its body once."""
        value = walk()
        for _ in range(_ROUNDS - 1):
            if summary.provisional_on is not None:
                self._provisional.append(key)
                return value
            if summary.assumed_result is None:
                return value
            self.forget()
            if value.key == summary.assumed_result.key:
                return value if value is not BOTTOM else UNKNOWN
            if not may_hold_tensor(value):  # nothing that a rule judges: another walk would not pay
                return Static(value.type) if isinstance(value, Static) and value is not NONE else UNKNOWN
            summary.clear()
            summary.assumed_result = value
            value = walk()
        self.forget()
        return UNKNOWN

    def given(self, summary: FunctionSummary, stack: list[FunctionSummary], traced: bool) -> Value:
        """The result of a summary that was entered before. While it is being computed, that is the assumed one, and all
        summaries above it on `stack` become provisional; UNKNOWN where the code is not `traced`."""
        assumes = summary if summary.value is None else summary.provisional_on
        if assumes is not None:
            if not traced or assumes not in stack:
                return UNKNOWN  # asked by a reader, mostly, who keeps what he reads
            _rely(assumes, stack)
        if summary.value is not None:
            return summary.value
        if summary.assumed_result is None:
            summary.assumed_result = BOTTOM
        return summary.assumed_result


def _rely(head: FunctionSummary, stack: list[FunctionSummary]) -> None:
    """Mark the summaries above `head` as provisional on it, unless they are on an outer one."""
    depth = stack.index(head)
    for one in stack[depth + 1 :]:
        if one.provisional_on is None or stack.index(one.provisional_on) > depth:
            one.provisional_on = head
