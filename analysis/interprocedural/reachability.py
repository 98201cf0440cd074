"""Reachability: which summaries tracing reaches from the roots, and whether it does so on every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.interprocedural.summaries import FunctionSummary

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import FunctionInfo
    from graphmend.analysis.region.region import Region


class Reached(NamedTuple):
    """A summary that tracing reaches, and from which region."""

    summary: FunctionSummary
    region: Region
    always: bool
    """Whether every run reaches it."""


def reached(roots: Iterable[tuple[FunctionSummary, Region]]) -> list[Reached]:
    """The summaries that tracing reaches from the roots.

    One that two roots reach belongs to the first; a second entry is added if a later root reaches it on every run and
    the first does not. An assumed root is left out where a compiled region reaches the same function, whose arguments
    are known there. A function that is compiled by itself is no part of what is only assumed to be.
    """
    found: list[Reached] = []
    seen: dict[FunctionSummary, bool] = {}
    compiled: set[FunctionInfo] = set()
    roots = list(roots)
    by_themselves = {root.info for root, region in roots if region.kind == "compiled"}
    for root, region in roots:
        if region.kind == "assumed" and root.info in compiled:
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
                if region.kind == "assumed" and called.info in by_themselves:
                    continue
                stack.append((called, always and on_every_run))
    return found


def below(root: FunctionSummary) -> set[FunctionSummary]:
    """The summaries that tracing reaches from one root, itself included."""
    seen = {root}
    stack = [root]
    while stack:
        for called in stack.pop().calls:
            if called not in seen:
                seen.add(called)
                stack.append(called)
    return seen
