"""What the checks of files that are not under PATH find in those that are: `check PATH` reports files under PATH alone,
but what compiles and calls them may stand beside it in the same package.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from graphmend.cli.checking.file_report import FileReport
from graphmend.cli.checking.plan import Plan
from graphmend.cli.checking.process_pool import check_all
from graphmend.workspace.importers import MANY, all_importers


def add_callers(plan: Plan, reports: Sequence[FileReport], jobs: int | None) -> str | None:
    """Adds to the reports what their importers' checks find in them. A remark where these are too many."""
    callers = all_importers([Path(report.path) for report in reports if report.checked], MANY)
    if len(callers) > MANY:
        return (
            f"{len(callers)} files that import the checked ones were not looked at: name their folder to check them too"
        )
    plan = replace(plan, mode="check", mends=plan.mends or plan.mode != "check")
    _add(reports, check_all(plan, callers, jobs))
    return None


def with_callers(reports: Sequence[FileReport], callers: Iterable[FileReport]) -> list[FileReport]:
    """The reports, with what those of their importers say of them; these and those stay as they are."""
    copies = [replace(report, elsewhere=[*report.elsewhere], callers={*report.callers}) for report in reports]
    _add(copies, callers)
    return copies


def _add(reports: Sequence[FileReport], callers: Iterable[FileReport]) -> None:
    here = {report.path: report for report in reports if report.checked}
    for report in callers:
        for item in report.elsewhere:
            if item.finding.path in here:
                here[item.finding.path].elsewhere.append(item)
                here[item.finding.path].callers.add(report.path)
