"""The summaries of all functions that were walked, by function and kinds of arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.lattice.dependence import Parameter
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.region.roots import Region

#: combinations of arguments for which a function is walked before constants among them stop to count
_MOST_VARIANTS = 16


class SummaryTable:
    """What was walked so far."""

    def __init__(self) -> None:
        self.roots: list[tuple[FunctionSummary, Region]] = []
        """The walks that tracing starts with, and why."""
        self.results_memoised: set[FunctionInfo] = set()
        """Functions whose results went into attributes and globals, which are evaluated once."""
        self.mixed_declarations: set[Parameter] = set()
        """Parameters whose declaration some call of a function rests on, but not the one that it was walked for."""
        self.generalised = 0
        """How often constants did not count because a function had too many variants."""
        self._by_key: dict[Hashable, FunctionSummary] = {}
        self._variants: Counter[FunctionInfo] = Counter()

    def __len__(self) -> int:
        return len(self._by_key)

    def __iter__(self) -> Iterator[FunctionSummary]:
        """All summaries but those of the roots."""
        return iter(self._by_key.values())

    def get(self, key: Hashable) -> FunctionSummary | None:
        """The summary under a key, if there is one."""
        return self._by_key.get(key)

    def add(self, key: Hashable, summary: FunctionSummary) -> None:
        """Keep a new variant of a function."""
        self._variants[summary.info] += 1
        self._by_key[key] = summary

    def discard(self, key: Hashable) -> None:
        """Drop what is kept under a key."""
        self._by_key.pop(key, None)

    def has_many_variants(self, info: FunctionInfo) -> bool:
        """Whether constants among a function's arguments do not count any more."""
        return self._variants[info] >= _MOST_VARIANTS

    def drop(self, info: FunctionInfo) -> None:
        """Drop all summaries of a function but those of roots."""
        for key in [key for key, summary in self._by_key.items() if summary.info is info]:
            del self._by_key[key]
        self._variants.pop(info, None)

    def keep_only(self, live: Iterable[FunctionSummary]) -> None:
        """Drop all summaries but these."""
        kept = set(live)
        self._by_key = {key: summary for key, summary in self._by_key.items() if summary in kept}

    def callers_of(self, summaries: Iterable[FunctionSummary]) -> list[FunctionSummary]:
        """The walks, roots included, that entered one of these."""
        called = set(summaries)
        return [one for one in (*self, *(root for root, _ in self.roots)) if not called.isdisjoint(one.calls)]

    def clear(self) -> None:
        """Let go of all walks."""
        self.roots.clear()
        self._by_key.clear()
        self._variants.clear()
        self.results_memoised.clear()
        self.mixed_declarations.clear()

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """What is walked meanwhile is kept apart and dropped, and what was walked before is not seen."""
        outer = self._by_key, self._variants
        self._by_key, self._variants = {}, Counter()
        try:
            yield
        finally:
            self._by_key, self._variants = outer
