"""What the checks of files that are not under PATH find in those that are: `check PATH` reports files under PATH alone,
but what compiles and calls them may stand beside it in the same package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphmend.cli.checking.file_report import FileReport
from graphmend.cli.checking.plan import Plan
from graphmend.cli.checking.process_pool import check_all
from graphmend.workspace.importers import MANY, all_importers


def add_callers(plan: Plan, reports: Sequence[FileReport], jobs: int | None) -> str | None:
    """Adds to the reports what their importers' checks find in them. A remark where these are too many."""
    here = {report.path: report for report in reports if report.checked}
    callers = all_importers([Path(path) for path in here], MANY)
    if len(callers) > MANY:
        return (
            f"{len(callers)} files that import the checked ones were not looked at: name their folder to check them too"
        )
    for report in check_all(replace(plan, mode="check", mends=plan.mends or plan.mode != "check"), callers, jobs):
        for item in report.elsewhere:
            if item.finding.path in here:
                here[item.finding.path].elsewhere.append(item)
                here[item.finding.path].callers.add(report.path)
    return None
