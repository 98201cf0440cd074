"""Reachability: which summaries tracing reaches from the roots, and whether it does so on every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.lattice.dependence import parts_of
from graphmend.analysis.lattice.values import UNKNOWN, Const, Container, Scalar, Static, Value

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
    are known there. A function that is compiled by itself is no part of what is only assumed to be. What a region that
    counts alone reaches counts where no other one reaches that function, no other one of its kind calls its root, and
    the result is more than a reading.
    """
    found: list[Reached] = []
    seen: dict[FunctionSummary, bool] = {}
    compiled: set[FunctionInfo] = set()
    known: set[FunctionInfo] = set()
    roots = list(roots)
    by_themselves = {root.info for root, region in roots if region.kind == "compiled"}
    called_alone = {s.info for root, region in roots if region.alone for s in below(root) if s.info is not root.info}
    for root, region in sorted(roots, key=lambda one: one[1].alone):
        if region.kind == "assumed" and root.info in (called_alone if region.alone else compiled):
            continue
        if region.alone and _is_reading(root.value):
            continue
        stack = [(root, True)]
        while stack:
            summary, always = stack.pop()
            before = seen.get(summary)
            if before is not None and (before or not always):
                continue
            if region.alone and summary.info in known:
                continue
            seen[summary] = always
            found.append(Reached(summary, region, always))
            if region.kind == "compiled":
                compiled.add(summary.info)
            if not region.alone:
                known.add(summary.info)
            for called, on_every_run in summary.calls.items():
                if region.kind == "assumed" and called.info in by_themselves:
                    continue
                stack.append((called, always and on_every_run))
    return found


def _is_reading(value: Value | None) -> bool:
    """Whether a result is numbers, text, flags, and no tensor: what is measured of a model, and not computed by it."""
    if value is None or (isinstance(value, Const) and value.value is None):
        return False
    return all(part is not UNKNOWN and isinstance(part, (Static, Scalar, Container)) for part in parts_of(value))


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
