"""The findings of one file between two edits: those of a function are made again only where something new was said.

Which walks tracing gets to, and which of them speak about which function, is kept as long as no walk enters others than
before; so a keystroke costs what its own function costs, however long the file is.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from graphmend.analysis.finding import Finding
from graphmend.analysis.findings.contradicted_declarations import Calls
from graphmend.analysis.findings.report import Found, Home, Said, by_place, found_in, home, path_of
from graphmend.analysis.interprocedural.reachability import Reached, reached
from graphmend.analysis.interprocedural.summaries import Activation
from graphmend.analysis.lattice.dependence import Parameter
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.region.roots import Region

Roots = Iterable[tuple[Activation, Region]]


class Standing:
    """What stands in one file. Told of a walk before it is made again, it asks for no more than that changed."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._calls = Calls(())
        self._speakers: dict[Home, list[Reached]] = {}
        self._found: dict[Home, list[Found]] = {}
        self._before: dict[Activation, tuple[list[tuple[Activation, bool]], set[Home]]] = {}

    def start(self, roots: Roots) -> None:
        """Everything may have changed."""
        self._before.clear()
        self._found.clear()
        self._speakers.clear()
        live = reached(roots)
        self._calls = Calls(one.activation for one in live)
        for one in live:
            for where in _spoken_of(one.activation):
                if path_of(where) == self._path:
                    self._speakers.setdefault(where, []).append(one)

    def may_contradict(self, parameters: Iterable[Parameter]) -> bool:
        """Whether calls pass something else than a tensor for one of these parameters."""
        return any(map(self._calls.may_contradict, parameters))

    def walks_again(self, activation: Activation) -> None:
        """An activation is about to be walked again."""
        if activation not in self._before:
            self._before[activation] = list(activation.calls.items()), _spoken_of(activation)

    def walked(self, infos: Iterable[FunctionInfo], roots: Roots) -> None:
        """All that an edit of these functions changes was walked again."""
        for activation, (calls, homes) in self._before.items():
            if list(activation.calls.items()) != calls or _spoken_of(activation) != homes:
                self.start(roots)
                return
            for where in homes:
                self._found.pop(where, None)
        self.moved(map(home, infos))
        self._before.clear()

    def moved(self, homes: Iterable[Home]) -> None:
        """Functions stand on other lines now."""
        for where in homes:
            self._found.pop(where, None)

    def outside(self, functions: set[FunctionInfo]) -> Iterator[tuple[Home, FunctionInfo, int]]:
        """What is spoken of in none of these functions: lambdas of the top level, methods of inner classes. Each with
        the outermost function whose lines count, and a line of it in the text that was parsed."""
        for where in self._speakers:
            if where not in functions:
                for said in self._said(where):
                    info = said.verdict.info
                    while info.outer is not None:
                        info = info.outer
                    yield where, info, said.verdict.node.lineno

    def findings(self, without: Container[Home] = ()) -> tuple[Finding, ...]:
        """The findings as they stand, in the order of the text, but for those in some functions."""
        everything: list[Found] = []
        for where in self._speakers:
            if where not in without:
                found = self._found.get(where)
                if found is None:
                    found = self._found[where] = found_in(self._said(where))
                everything += found
        return tuple(one.finding for one in sorted(everything, key=by_place))

    def _said(self, where: Home) -> Iterator[Said]:
        for activation, region, always in self._speakers[where]:
            for verdict in activation.verdicts.values():
                if home(verdict.info) is where and not self._calls.contradict(verdict):
                    yield Said(verdict, region, always)


def _spoken_of(activation: Activation) -> set[Home]:
    return {home(verdict.info) for verdict in activation.verdicts.values()}
