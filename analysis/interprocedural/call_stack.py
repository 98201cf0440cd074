"""The call stack of the analysis: which summaries are being computed, how deep the calls are nested, and whether the
current code is traced. All temporary changes are context managers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.program.definitions import FunctionInfo

#: calls within calls that are followed
DEEPEST = 14
#: walks of one inner function in one walk of that around it
_MOST_CLOSURES = 64


class CallStack:
    """The summaries that are being computed, outermost first, and counters that bound the analysis."""

    def __init__(self) -> None:
        self.walks: list[FunctionSummary] = []
        self.depth = 0
        """How deep calls are nested, evaluation on demand included."""
        self.traced = False
        """Whether the current code is traced by TorchDynamo."""
        self.is_isolated = False
        self._active: list[FunctionInfo] = []
        self._closures: Counter[FunctionInfo] = Counter()

    @property
    def innermost(self) -> FunctionSummary | None:
        """The summary that is being computed; None outside all."""
        return self.walks[-1] if self.walks else None

    def too_deep(self) -> bool:
        """Whether calls are nested so deep that one more is not followed."""
        return self.depth >= DEEPEST

    def times_active(self, info: FunctionInfo) -> int:
        """How many calls of a function are on the stack."""
        return self._active.count(info)

    def may_close_over(self, info: FunctionInfo) -> bool:
        """Count one more walk of an inner function within the current walk; False for one too many."""
        self._closures[info] += 1
        return self._closures[info] <= _MOST_CLOSURES

    @contextmanager
    def root(self, summary: FunctionSummary) -> Iterator[None]:
        """The block computes a summary as the outermost one; afterwards the stack is empty."""
        self.walks, self.traced, self.depth = [summary], summary.within_region, 0
        self._active.clear()
        self._closures.clear()
        try:
            yield
        finally:
            self.walks, self.traced, self.depth = [], False, 0
            self._active.clear()

    @contextmanager
    def walking(self, summary: FunctionSummary) -> Iterator[None]:
        """The block computes a summary that the current one calls."""
        closures = self._closures
        self.walks.append(summary)
        try:
            yield
        finally:
            self.walks.pop()
            self._closures = closures

    def forget_closures(self) -> None:
        """Reset the counts of walks of inner functions."""
        self._closures = Counter()

    @contextmanager
    def body(self, info: FunctionInfo) -> Iterator[None]:
        """The block walks a function's body, one call deeper."""
        self.depth += 1
        self._active.append(info)
        try:
            yield
        finally:
            self._active.pop()
            self.depth -= 1

    @contextmanager
    def region(self, traced: bool) -> Iterator[None]:
        """The block is code that is traced, or is not."""
        outer, self.traced = self.traced, traced
        try:
            yield
        finally:
            self.traced = outer

    @contextmanager
    def separate(self) -> Iterator[None]:
        """The block is no part of the current walk: it adds nothing to its summary."""
        outer = self.walks, self._closures
        self.walks, self._closures = [], Counter()
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
            self.walks, self._closures = outer

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """The block runs with an empty stack, so that its result does not depend on the callers."""
        outer = self.depth, self.walks, self._active, self.is_isolated
        self.depth, self.walks, self._active, self.is_isolated = 0, [], [], True
        try:
            yield
        finally:
            self.depth, self.walks, self._active, self.is_isolated = outer
