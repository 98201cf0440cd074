"""The table of summaries, by function and abstract arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.lattice.dependence import Parameter
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.region.region import Region

#: combinations of arguments for which a function is walked before constants among them stop to count
_MOST_VARIANTS = 16


class SummaryTable:
    """All summaries of one session."""

    def __init__(self) -> None:
        self.roots: list[tuple[FunctionSummary, Region]] = []
        """The summaries of roots, which are in no table, with their regions."""
        self.results_memoised: set[FunctionInfo] = set()
        """Functions whose results are part of attributes and globals, which are evaluated once and kept."""
        self.mixed_declarations: set[Parameter] = set()
        """Parameters on whose declaration an argument rests in some calls that share a summary, and not in others."""
        self.generalised = 0
        """How often constants were dropped because a function had too many variants."""
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
        """Whether a function has so many summaries that constants among its arguments are dropped."""
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
        """The summaries, roots included, that call one of these."""
        called = set(summaries)
        return [one for one in (*self, *(root for root, _ in self.roots)) if not called.isdisjoint(one.calls)]

    def clear(self) -> None:
        """Drop everything."""
        self.roots.clear()
        self._by_key.clear()
        self._variants.clear()
        self.results_memoised.clear()
        self.mixed_declarations.clear()

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """The block works on an empty table, which is dropped at its end."""
        outer = self._by_key, self._variants
        self._by_key, self._variants = {}, Counter()
        try:
            yield
        finally:
            self._by_key, self._variants = outer
