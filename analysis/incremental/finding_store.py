"""Cache of one file's findings, keyed by outermost function.

After an edit only functions whose verdicts may have changed are rebuilt, and the list of reachable summaries only if a
re-analysed function calls others than before. Cost per keystroke: the edited function, not the file.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from graphmend.analysis.finding import Finding
from graphmend.analysis.findings.contradicted_declarations import KnownCalls
from graphmend.analysis.findings.report import (
    LocatedFinding,
    Owner,
    ReachedVerdict,
    by_place,
    found_in,
    owner_of,
    path_of_owner,
)
from graphmend.analysis.interprocedural.reachability import Reached, below, reached
from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.lattice.dependence import Parameter
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.region.region import Region

Roots = Iterable[tuple[FunctionSummary, Region]]


class Reach(NamedTuple):
    """What the code that a definition traces breaks at: the functions of its file with findings, by qualified name, and
    the number of places in other files."""

    functions: frozenset[str] = frozenset()
    elsewhere: int = 0


class FindingStore:
    """The findings of one file. Its owner calls `before_reanalysis` for every summary and `after_reanalysis` once."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._calls = KnownCalls(())
        self._speakers: dict[Owner, list[Reached]] = {}
        self._found: dict[Owner, list[LocatedFinding]] = {}
        self._before: dict[FunctionSummary, tuple[list[tuple[FunctionSummary, bool]], set[Owner]]] = {}

    def rebuild(self, roots: Roots) -> None:
        """Recompute which summaries are reachable and drop all findings: everything may have changed."""
        self._before.clear()
        self._found.clear()
        self._speakers.clear()
        live = reached(roots)
        self._calls = KnownCalls(one.summary for one in live)
        for one in live:
            for where in _spoken_of(one.summary):
                if path_of_owner(where) == self._path:
                    self._speakers.setdefault(where, []).append(one)

    def may_contradict(self, parameters: Iterable[Parameter]) -> bool:
        """Whether a known call passes something else than a tensor for one of these parameters."""
        return any(map(self._calls.may_contradict, parameters))

    def before_reanalysis(self, summary: FunctionSummary) -> None:
        """A summary is about to be re-analysed: remember its calls and where its verdicts are."""
        if summary not in self._before:
            self._before[summary] = list(summary.calls.items()), _spoken_of(summary)

    def after_reanalysis(self, infos: Iterable[FunctionInfo], roots: Roots) -> None:
        """All summaries that an edit of these functions affects were re-analysed: drop the findings that may differ."""
        for summary, (calls, homes) in self._before.items():
            if list(summary.calls.items()) != calls or _spoken_of(summary) != homes:
                self.rebuild(roots)
                return
            for where in homes:
                self._found.pop(where, None)
        self.moved(map(owner_of, infos))
        self._before.clear()

    def moved(self, homes: Iterable[Owner]) -> None:
        """Functions moved to other lines: drop their findings."""
        for where in homes:
            self._found.pop(where, None)

    def outside(self, functions: set[FunctionInfo]) -> Iterator[tuple[Owner, FunctionInfo, int]]:
        """Verdicts outside these functions (in lambdas of the top level, methods of inner classes): the owner, the
        outermost function around, and the verdict's line in the text that was parsed."""
        for where in self._speakers:
            if where not in functions:
                for said in self._said(where):
                    info = said.verdict.info
                    while info.outer is not None:
                        info = info.outer
                    yield where, info, said.verdict.node.lineno

    def findings(self, without: Container[Owner] = ()) -> tuple[Finding, ...]:
        """All findings in the order of the text, except those of the owners in `without`."""
        everything: list[LocatedFinding] = []
        for where in self._speakers:
            if where not in without:
                found = self._found.get(where)
                if found is None:
                    found = self._found[where] = found_in(self._said(where))
                everything += found
        return tuple(one.finding for one in sorted(everything, key=by_place))

    def reach(self, roots: Roots) -> dict[str, Reach]:
        """What tracing from the roots of this file reaches, by the name of the outermost class or function."""
        functions: dict[str, set[str]] = {}
        elsewhere: dict[str, set[object]] = {}
        for root, region in roots:
            if root.info.module.source.path != self._path or region.alone:
                continue
            name = root.info.qualname.partition(".")[0]
            here, there = functions.setdefault(name, set()), elsewhere.setdefault(name, set())
            for summary in below(root):
                for place, verdict in summary.verdicts.items():
                    if self._calls.contradict(verdict):
                        continue
                    if verdict.info.module.source.path == self._path:
                        here.add(verdict.info.qualname)
                    else:
                        there.add(place)
        return {name: Reach(frozenset(found), len(elsewhere[name])) for name, found in functions.items()}

    def _said(self, where: Owner) -> Iterator[ReachedVerdict]:
        for summary, region, always in self._speakers[where]:
            for verdict in summary.verdicts.values():
                if owner_of(verdict.info) is where and not self._calls.contradict(verdict):
                    yield ReachedVerdict(verdict, region, always)


def _spoken_of(summary: FunctionSummary) -> set[Owner]:
    return {owner_of(verdict.info) for verdict in summary.verdicts.values()}
