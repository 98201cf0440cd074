"""Where the analysis stands: which walks are under way, how deep in calls, and whether what is walked is traced.

What is changed for a while is changed by a context manager, so nothing has to be put back by hand.
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
    """The walks under way, outermost first."""

    def __init__(self) -> None:
        self.walks: list[FunctionSummary] = []
        self.depth = 0
        """How many calls deep what is walked is, readings included."""
        self.traced = False
        """Whether what is walked lies in a region that is compiled."""
        self.is_isolated = False
        self._active: list[FunctionInfo] = []
        self._closures: Counter[FunctionInfo] = Counter()

    @property
    def innermost(self) -> FunctionSummary | None:
        """The walk under way; None outside all walks."""
        return self.walks[-1] if self.walks else None

    def too_deep(self) -> bool:
        """Whether one more call is not followed."""
        return self.depth >= DEEPEST

    def times_active(self, info: FunctionInfo) -> int:
        """How many calls of a function are under way."""
        return self._active.count(info)

    def may_close_over(self, info: FunctionInfo) -> bool:
        """Count a walk of a function that closes over names of the walk under way; False for one too many."""
        self._closures[info] += 1
        return self._closures[info] <= _MOST_CLOSURES

    @contextmanager
    def root(self, summary: FunctionSummary) -> Iterator[None]:
        """Walk a summary from nothing: it is outermost, and afterwards nothing is under way."""
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
        """Walk a summary on behalf of the one under way."""
        closures = self._closures
        self.walks.append(summary)
        try:
            yield
        finally:
            self.walks.pop()
            self._closures = closures

    def forget_closures(self) -> None:
        """Count walks of inner functions from nothing."""
        self._closures = Counter()

    @contextmanager
    def body(self, info: FunctionInfo) -> Iterator[None]:
        """Walk a function's body."""
        self.depth += 1
        self._active.append(info)
        try:
            yield
        finally:
            self._active.pop()
            self.depth -= 1

    @contextmanager
    def region(self, traced: bool) -> Iterator[None]:
        """What follows is traced, or is not."""
        outer, self.traced = self.traced, traced
        try:
            yield
        finally:
            self.traced = outer

    @contextmanager
    def separate(self) -> Iterator[None]:
        """What follows is no part of the walk under way."""
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
        """What follows begins with nothing under way, as if nothing had led to it."""
        outer = self.depth, self.walks, self._active, self.is_isolated
        self.depth, self.walks, self._active, self.is_isolated = 0, [], [], True
        try:
            yield
        finally:
            self.depth, self.walks, self._active, self.is_isolated = outer
