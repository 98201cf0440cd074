"""What a function gives that calls itself: the least value that agrees with its own body.

A call of a walk that is under way gives NOTHING at first, so the paths that return without it say what the function
gives; the body is then walked again with that, until it gives no more. Walks that rely on what was assumed of another
one are kept only until that one is walked again or has settled; of functions that call each other, the first iterates.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.lattice.dependence import may_hold_tensor
from graphmend.analysis.lattice.values import BOTTOM, NONE, UNKNOWN, Static, Value

#: a body is walked at most this often; what has not settled then is UNKNOWN
_ROUNDS = 4


class Recursion:
    """The walks of a session that rely on assumptions."""

    def __init__(self, activations: dict[Hashable, FunctionSummary]) -> None:
        self._activations = activations
        self._provisional: list[Hashable] = []

    def forget(self) -> None:
        """Drop the walks that rely on an assumption."""
        for key in self._provisional:
            self._activations.pop(key, None)
        self._provisional.clear()

    def settled(self, activation: FunctionSummary, key: Hashable, walk: Callable[[], Value]) -> Value:
        """What an activation gives. `walk` walks its body once."""
        value = walk()
        for _ in range(_ROUNDS - 1):
            if activation.provisional_on is not None:
                self._provisional.append(key)
                return value
            if activation.assumed_result is None:
                return value
            self.forget()
            if value.key == activation.assumed_result.key:
                return value if value is not BOTTOM else UNKNOWN
            if not may_hold_tensor(value):  # nothing that a rule speaks of: not worth another walk
                return Static(value.type) if isinstance(value, Static) and value is not NONE else UNKNOWN
            activation.clear()
            activation.assumed_result = value
            value = walk()
        self.forget()
        return UNKNOWN

    def given(self, activation: FunctionSummary, stack: list[FunctionSummary], traced: bool) -> Value:
        """What a call of an activation that was entered before gives. `stack`: the activations under way; those that
        the call comes through rely on what is assumed of the called one. Code that is not `traced` is not worth it."""
        assumes = activation if activation.value is None else activation.provisional_on
        if assumes is not None:
            if not traced or assumes not in stack:
                return UNKNOWN  # asked by a reader, mostly, who keeps what he reads
            _rely(assumes, stack)
        if activation.value is not None:
            return activation.value
        if activation.assumed_result is None:
            activation.assumed_result = BOTTOM
        return activation.assumed_result


def _rely(head: FunctionSummary, stack: list[FunctionSummary]) -> None:
    """Note of all that were entered from `head` that they rely on it, unless they rely on an outer one."""
    depth = stack.index(head)
    for one in stack[depth + 1 :]:
        if one.provisional_on is None or stack.index(one.provisional_on) > depth:
            one.provisional_on = head
