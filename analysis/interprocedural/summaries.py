"""Summaries of functions: result, verdicts, calls and reads of one function for one combination of arguments.

They are kept from one state of a text to the next, so that an edit recomputes only those that it can affect."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.interprocedural.verdicts import Verdict
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.region.mode import Mode

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import Attribute, FunctionInfo
    from graphmend.analysis.program.entities import Function


class FunctionSummary:
    """What a function does for one combination of abstract arguments (`env`, by parameter) in one tracing mode."""

    __slots__ = (
        "alone",
        "always_breaks",
        "assumed_result",
        "breaks",
        "calls",
        "closure",
        "env",
        "frame_lost_at",
        "info",
        "mode",
        "provisional_on",
        "reads",
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
        alone: bool = False,
    ) -> None:
        self.info = info
        self.env = dict(env)
        self.closure = closure
        self.silent = silent
        self.within_region = within_region
        self.mode = mode
        self.alone = alone
        """Whether it is that of a root which counts only where nothing else reaches it."""
        self.value: Value | None = None
        """The result; None while it is being computed."""
        self.assumed_result: Value | None = None
        """The value of recursive calls while it is being computed; None where there was no such call."""
        self.provisional_on: FunctionSummary | None = None
        """The outermost summary on the stack whose assumed result this one depends on."""
        self.verdicts: dict[tuple[str, int, int, str], Verdict] = {}
        self.frame_lost_at: dict[Evidence | None, ast.AST] = {}
        """The evidence of values that made TorchDynamo give the frame up, and where they did so first."""
        self.breaks = False
        """Whether the graph breaks in the function or in one that it calls."""
        self.always_breaks = False
        """Whether it does so on every run."""
        self.calls: dict[FunctionSummary, bool] = {}
        """The summaries that it calls, and whether it does so on every run."""
        self.reads: set[Attribute] = set()
        """The attributes that it reads."""

    def clear(self) -> None:
        """Drop what a walk computed, before the next one."""
        self.verdicts.clear()
        self.calls.clear()
        self.frame_lost_at.clear()
        self.reads.clear()
        self.breaks = self.always_breaks = False

    def add(self, place: tuple[str, int, int, str], verdict: Verdict) -> None:
        """Keep a verdict; a more certain one replaces one for the same place."""
        old = self.verdicts.get(place)
        if old is None or (_doubt(verdict) < _doubt(old)):
            self.verdicts[place] = verdict

    def broke(self, always: bool) -> None:
        """Note that the graph breaks, here or in a callee; `always`: on every run."""
        self.breaks = True
        self.always_breaks |= always

    def lost_before(self, verdict: Verdict) -> bool:
        """Whether Dynamo has given the frame up already for the same value: it never gets to this place."""
        origin = verdict.breaks.origin
        return origin is not None and self.frame_lost_at.get(origin, verdict.node) is not verdict.node

    def leaves_out(self, function: Function) -> bool:
        """Whether this is an offered method, and it calls a method that a class of another file defines: that is
        offered there, and what drives models from another file (a loop that samples) is larger than all of this one."""
        info = function.info
        is_method = info.owner is not None and isinstance(function.bound, Instance)
        return self.alone and is_method and info.module is not self.info.module

    def entered(self, summary: FunctionSummary, conditional: bool) -> None:
        self.calls[summary] = self.calls.get(summary, False) or not conditional


def _doubt(verdict: Verdict) -> int:
    return verdict.conditional + verdict.breaks.likely
