"""What a check before and after says about a mend: it counts as verified only where nothing differs but what
it names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.dynamo.report import Report, TargetReport


class Unverified(NamedTuple):
    """Why a mend is not verified: one line for the user, and the same without anything that the checked code printed,
    raised, stored or named, for whoever is not to read that.
    """

    line: str
    bare: str


def compared(report: Report, finding: Finding) -> bool:
    """Whether a target that leads to the finding could be run before and after."""
    return any(target.name in _after(report) for target in _covering(report, finding))


def of(report: Report, finding: Finding) -> str:
    """Why a mend is not verified, in one line; "" where it is."""
    found = why(report, finding)
    return "" if found is None else found.line


def why(report: Report, finding: Finding) -> Unverified | None:
    """Why a mend is not verified; None where it is."""
    if report.after is not None and report.after.problem is not None:
        return Unverified(f"the mended text: {report.after.problem}", f"the mended text: {report.after.bare}")
    from graphmend.dynamo.verdict import judge  # what is asked after a check is not loaded at the start

    covering, after = _covering(report, finding), _after(report)
    if not covering:
        return _uncovered(report)
    for target in covering:
        if target.name not in after:
            return _problem(report.after, target.name) or _same(f"{target.name} could not be compared")
    for name, target in after.items():
        assert target.comparison is not None
        unnamed = judge(target.comparison, report.after.named if report.after is not None else ()).unnamed
        if unnamed and not target.comparison.differences:
            less = f"{name} prints less when compiled"
            return Unverified(f"{less}: {target.comparison.silenced[0]!r}", less)
        if unnamed:
            return Unverified(f"{name} differs: {unnamed[0].line}", f"{name} differs: {unnamed[0].bare}")
    before = _breaks((target for target in report.targets if target.name in after), finding.path)
    left = _breaks(after.values(), finding.path)
    if finding.effect == "recompiles" and left <= before:
        return _compiled_less((target for target in report.targets if target.name in after), after.values())
    if left < before or left == before == 0:
        return None
    return _same(
        "TorchDynamo breaks the graph " + ("as often as before" if left == before else "more often than before")
    )


def _same(line: str) -> Unverified:
    return Unverified(line, line)


def _compiled_less(before: Iterable[TargetReport], after: Iterable[TargetReport]) -> Unverified | None:
    """Why a mend of what is compiled anew is not verified: targets are compiled less often, or are compiled once."""
    was, now = (sum(target.compilations - 1 for target in targets) for targets in (before, after))
    if now < was or now == was == 0:
        return None
    return _same("TorchDynamo compiles anew " + ("as often as before" if now == was else "more often than before"))


def _covering(report: Report, finding: Finding) -> list[TargetReport]:
    """The targets that were checked and lead to the line of a finding."""
    path, line = finding.path, finding.span.line
    checked = (target for target in report.targets if target.status == "checked")
    return [target for target in checked if line in target.traced[path] | target.executed[path]]


def _after(report: Report) -> dict[str, TargetReport]:
    """What was compared, by target."""
    targets = report.after.targets if report.after is not None else ()
    return {target.name: target for target in targets if target.comparison is not None}


def _uncovered(report: Report) -> Unverified:
    if any(target.status == "checked" for target in report.targets):
        return _same("no input that was tried leads to this line")
    found = (_problem(report, target.name) for target in report.targets)
    return next(filter(None, found), _same("nothing could be compared"))


def _problem(report: Report | None, name: str) -> Unverified | None:
    targets = report.targets if report is not None else ()
    target = next((target for target in targets if target.name == name), None)
    return Unverified(target.problem, target.bare or "") if target is not None and target.problem else None


def _breaks(targets: Iterable[TargetReport], path: str) -> int:
    """In how many places of a file the graphs of targets break."""
    place = os.path.realpath(path)
    return sum(os.path.realpath(item.path) == place for target in targets for item in target.breaks)
