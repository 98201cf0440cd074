"""What a function gives that calls itself: the least value that agrees with its own body.

A call of a walk that is under way gives NOTHING at first, so the paths that return without it say what the function
gives; the body is then walked again with that, until it gives no more. Walks that rely on what was assumed of another
one are kept only until that one is walked again or has settled; of functions that call each other, the first iterates.
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
    """The walks of a session that rely on assumptions."""

    def __init__(self, summaries: SummaryTable) -> None:
        self._summaries = summaries
        self._provisional: list[Hashable] = []

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """What follows begins without assumptions."""
        outer, self._provisional = self._provisional, []
        try:
            yield
        finally:
            self._provisional = outer

    def forget(self) -> None:
        """Drop the walks that rely on an assumption."""
        for key in self._provisional:
            self._summaries.discard(key)
        self._provisional.clear()

    def settled(self, summary: FunctionSummary, key: Hashable, walk: Callable[[], Value]) -> Value:
        """What an summary gives. `walk` walks its body once."""
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
            if not may_hold_tensor(value):  # nothing that a rule speaks of: not worth another walk
                return Static(value.type) if isinstance(value, Static) and value is not NONE else UNKNOWN
            summary.clear()
            summary.assumed_result = value
            value = walk()
        self.forget()
        return UNKNOWN

    def given(self, summary: FunctionSummary, stack: list[FunctionSummary], traced: bool) -> Value:
        """What a call of an summary that was entered before gives. `stack`: the summaries under way; those that
        the call comes through rely on what is assumed of the called one. Code that is not `traced` is not worth it."""
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
    """Note of all that were entered from `head` that they rely on it, unless they rely on an outer one."""
    depth = stack.index(head)
    for one in stack[depth + 1 :]:
        if one.provisional_on is None or stack.index(one.provisional_on) > depth:
            one.provisional_on = head
