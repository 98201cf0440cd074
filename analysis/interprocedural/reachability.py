"""Which walks tracing gets to from its roots, and whether it does so on every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.interprocedural.summaries import FunctionSummary

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import FunctionInfo
    from graphmend.analysis.region.roots import Region


class Reached(NamedTuple):
    """An summary that tracing gets to, and how."""

    summary: FunctionSummary
    region: Region
    always: bool
    """Whether on every run."""


def reached(roots: Iterable[tuple[FunctionSummary, Region]]) -> list[Reached]:
    """The summaries that tracing gets to from the roots.

    One that two roots reach belongs to the first; that a later one reaches it on every run is told by a second entry.
    A function that a compile site leads to is known by the calls there: as a root that is only assumed it adds nothing.
    A module that calls one which is compiled by itself is not assumed to be compiled as a whole.
    """
    found: list[Reached] = []
    seen: dict[FunctionSummary, bool] = {}
    compiled: set[FunctionInfo] = set()
    roots = list(roots)
    parts = {root.info for root, region in roots if region.kind == "compiled" and root.info.name == "forward"}
    for root, region in roots:
        if region.kind == "assumed" and (root.info in compiled or _enters(root, parts)):
            continue
        stack = [(root, True)]
        while stack:
            summary, always = stack.pop()
            before = seen.get(summary)
            if before is not None and (before or not always):
                continue
            seen[summary] = always
            found.append(Reached(summary, region, always))
            if region.kind == "compiled":
                compiled.add(summary.info)
            for called, on_every_run in summary.calls.items():
                stack.append((called, always and on_every_run))
    return found


def _enters(root: FunctionSummary, parts: set[FunctionInfo]) -> bool:
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
