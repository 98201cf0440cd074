"""Reachability: which summaries tracing reaches from the roots, and whether it does so on every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.interprocedural.summaries import FunctionSummary
from graphmend.analysis.lattice.dependence import may_hold_tensor, parts_of
from graphmend.analysis.lattice.values import UNKNOWN, Const, Container, Scalar, Static

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
    counts alone reaches counts where no region of another kind reaches that function, and its result is more than a
    measurement.
    """
    found: list[Reached] = []
    seen: dict[FunctionSummary, bool] = {}
    compiled: set[FunctionInfo] = set()
    known: set[FunctionInfo] = set()
    roots = list(roots)
    by_themselves = {root.info for root, region in roots if region.kind == "compiled"}
    for root, region in sorted(roots, key=lambda one: one[1].alone):
        if region.kind == "assumed" and root.info in (known if region.alone else compiled):
            continue
        if region.alone and not _computes(root):
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


def _computes(root: FunctionSummary) -> bool:
    """Whether a function gives tensors, or a method anything but numbers, text and flags: what these measure is not
    computed by a model."""
    value = root.value or UNKNOWN
    if root.info.owner is None:
        return may_hold_tensor(value)
    if isinstance(value, Const) and value.value is None:
        return True
    return any(part is UNKNOWN or not isinstance(part, (Static, Scalar, Container)) for part in parts_of(value))


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
