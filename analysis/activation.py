"""What one walk of one function gave: its result, what the rules said on the way, and which other walks it relied on.

Activations are kept from one state of a text to the next, so that an edit walks again only what it can affect.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.mode import Mode
from graphmend.analysis.origin import Origin
from graphmend.analysis.values import Value

if TYPE_CHECKING:
    from graphmend.analysis.definitions import Attribute, FunctionInfo
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
        "always_breaks",
        "asked",
        "assumed",
        "breaks",
        "calls",
        "closure",
        "env",
        "info",
        "mode",
        "reads",
        "relies_on",
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
        self.assumed: Value | None = None
        """What a call of itself gives it while the walk is under way; None where it made no such call."""
        self.relies_on: Activation | None = None
        """The outermost walk under way that this one relies on: on what that one was assumed to give."""
        self.verdicts: dict[tuple[str, int, int, str], Verdict] = {}
        self.asked: dict[Origin | None, ast.AST] = {}
        """Values that cost the frame wherever it is entered, and where they did so first."""
        self.breaks = False
        """Whether the graph breaks in this walk or in one that it entered."""
        self.always_breaks = False
        """Whether it does so on every run."""
        self.calls: dict[Activation, bool] = {}
        """The activations that this one entered, and whether it did so on every run."""
        self.reads: set[Attribute] = set()
        """The attributes that it asked for."""

    def clear(self) -> None:
        """Forget what a walk gave, for the next one."""
        self.verdicts.clear()
        self.calls.clear()
        self.asked.clear()
        self.reads.clear()
        self.breaks = self.always_breaks = False

    def add(self, place: tuple[str, int, int, str], verdict: Verdict) -> None:
        """Keep a verdict; a surer one replaces one for the same place."""
        old = self.verdicts.get(place)
        if old is None or (_doubt(verdict) < _doubt(old)):
            self.verdicts[place] = verdict

    def broke(self, always: bool) -> None:
        """The graph breaks, here or in a walk that was entered; whether it does so on every run."""
        self.breaks = True
        self.always_breaks |= always

    def lost_before(self, verdict: Verdict) -> bool:
        """Whether Dynamo has given the frame up already for the same value: it never gets to this place."""
        origin = verdict.breaks.origin
        return origin is not None and self.asked.get(origin, verdict.node) is not verdict.node

    def entered(self, activation: Activation, conditional: bool) -> None:
        self.calls[activation] = self.calls.get(activation, False) or not conditional


def _doubt(verdict: Verdict) -> int:
    return verdict.conditional + verdict.breaks.likely


class Reached(NamedTuple):
    """An activation that tracing gets to, and how."""

    activation: Activation
    region: Region
    always: bool
    """Whether on every run."""


def reached(roots: Iterable[tuple[Activation, Region]]) -> list[Reached]:
    """The activations that tracing gets to from the roots.

    One that two roots reach belongs to the first; that a later one reaches it on every run is told by a second entry.
    A function that a compile site leads to is known by the calls there: as a root that is only assumed it adds nothing.
    A module that calls one which is compiled by itself is not assumed to be compiled as a whole.
    """
    found: list[Reached] = []
    seen: dict[Activation, bool] = {}
    compiled: set[FunctionInfo] = set()
    roots = list(roots)
    parts = {root.info for root, region in roots if region.kind == "compiled" and root.info.name == "forward"}
    for root, region in roots:
        if region.kind == "assumed" and (root.info in compiled or _enters(root, parts)):
            continue
        stack = [(root, True)]
        while stack:
            activation, always = stack.pop()
            before = seen.get(activation)
            if before is not None and (before or not always):
                continue
            seen[activation] = always
            found.append(Reached(activation, region, always))
            if region.kind == "compiled":
                compiled.add(activation.info)
            for called, on_every_run in activation.calls.items():
                stack.append((called, always and on_every_run))
    return found


def _enters(root: Activation, parts: set[FunctionInfo]) -> bool:
    """Whether tracing a root gets to one of these functions."""
    seen = {root} if parts else set()
    stack = list(seen)
    while stack:
        for called in stack.pop().calls:
            if called.info in parts:
                return True
            if called not in seen:
                seen.add(called)
                stack.append(called)
    return False
