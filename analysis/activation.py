"""What one walk of one function gave: its result, what the rules said on the way, and which other walks it relied on.

Activations are kept from one state of a text to the next, so that an edit walks again only what it can affect.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.mode import Mode
from graphmend.analysis.values import Value

if TYPE_CHECKING:
    from graphmend.analysis.definitions import FunctionInfo
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.region import Region
    from graphmend.analysis.rules.rule import Break, Rule


class Verdict:
    """A rule's word about one place, as far as it does not depend on who called the function."""

    __slots__ = ("breaks", "callee", "conditional", "info", "loses_frame", "made", "node", "raises", "rule")

    def __init__(
        self,
        rule: Rule,
        breaks: Break,
        node: ast.expr | ast.stmt,
        info: FunctionInfo,
        conditional: bool,
        loses_frame: bool,
        callee: str | None,
        raises: bool,
    ) -> None:
        self.rule = rule
        self.breaks = breaks
        self.node = node
        self.info = info
        self.conditional = conditional
        self.loses_frame = loses_frame
        self.callee = callee
        self.raises = raises
        self.made: tuple[Region, bool, int, Finding] | None = None
        """The finding made of it last, and what it was made with."""


class Activation:
    """The walk of one function for one combination of arguments."""

    __slots__ = (
        "breaks",
        "calls",
        "closure",
        "env",
        "info",
        "mode",
        "silent",
        "value",
        "verdicts",
        "within_region",
    )

    def __init__(
        self,
        info: FunctionInfo,
        env: Mapping[str, Value],
        closure: Mapping[str, Value] | None,
        silent: int,
        within_region: bool,
        mode: Mode,
    ) -> None:
        self.info = info
        self.env = dict(env)
        self.closure = closure
        self.silent = silent
        self.within_region = within_region
        self.mode = mode
        self.value: Value | None = None
        """The result; None while the walk is under way."""
        self.verdicts: dict[tuple[str, int, int, str], Verdict] = {}
        self.breaks = False
        """Whether the graph breaks in this walk or in one that it entered."""
        self.calls: dict[Hashable, bool] = {}
        """The keys of the activations that this one entered, and whether it did so on every run."""

    def add(self, place: tuple[str, int, int, str], verdict: Verdict) -> None:
        """Keep a verdict; a surer one replaces one for the same place."""
        self.breaks |= verdict.breaks.effect != "recompiles"
        old = self.verdicts.get(place)
        if old is None or (_doubt(verdict) < _doubt(old)):
            self.verdicts[place] = verdict

    def entered(self, key: Hashable, conditional: bool) -> None:
        self.calls[key] = self.calls.get(key, False) or not conditional


def _doubt(verdict: Verdict) -> int:
    return verdict.conditional + verdict.breaks.likely


def reached(
    roots: Iterable[tuple[Activation, Region]], activations: Mapping[Hashable, Activation]
) -> list[tuple[Activation, Region, bool]]:
    """The activations that tracing gets to from the roots: each with its region, and whether on every run.

    One that two roots reach belongs to the first; that a later one reaches it on every run is told by a second entry.
    """
    found: list[tuple[Activation, Region, bool]] = []
    seen: dict[int, bool] = {}
    for root, region in roots:
        stack = [(root, True)]
        while stack:
            activation, always = stack.pop()
            before = seen.get(id(activation))
            if before is not None and (before or not always):
                continue
            seen[id(activation)] = always
            found.append((activation, region, always))
            for key, on_every_run in activation.calls.items():
                called = activations.get(key)
                if called is not None:
                    stack.append((called, always and on_every_run))
    return found
