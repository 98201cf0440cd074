"""What a check before and after says about a mend: it counts as verified only where nothing differs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.dynamo.report import Comparison, Report


def comparisons(report: Report) -> Iterator[tuple[str, Comparison]]:
    """What was compared, by target."""
    for target in report.after.targets if report.after is not None else ():
        if target.comparison is not None:
            yield target.name, target.comparison


def compared(report: Report) -> bool:
    """Whether a target could be run before and after."""
    return any(True for _ in comparisons(report))


def of(report: Report, finding: Finding) -> str:
    """Why a mend is not verified, in one line; "" where it is."""
    after = report.after
    if after is not None and after.problem is not None:
        return f"the mended text: {after.problem}"
    if not compared(report):
        problems = [target.problem for part in (report, after) if part for target in part.targets if target.problem]
        return next(iter(problems), "nothing could be compared")
    traced, executed = report.covered(finding.path)
    if finding.span.line not in traced | executed:
        return "no input that was tried leads to this line"
    for name, comparison in comparisons(report):
        if comparison.differences:
            return f"{name} differs: {comparison.differences[0]}"
        if comparison.silenced:
            return f"{name} prints less when compiled: {comparison.silenced[0]!r}"
    assert after is not None
    place = os.path.realpath(finding.path)
    before, left = (sum(os.path.realpath(b.path) == place for b in part.breaks) for part in (report, after))
    return "" if left < before or not before else "TorchDynamo breaks the graph as often as before"
