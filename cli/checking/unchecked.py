"""Files that are not checked and that checked code compiles: who checks a script alone is told where to look."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphmend.analysis.driver.near import is_installed
from graphmend.analysis.findings import suppressions
from graphmend.analysis.syntax.source import Source
from graphmend.cli.checking.file_report import FileReport
from graphmend.cli.checking.plan import Plan
from graphmend.cli.checking.selection import shown
from graphmend.cli.paths import relative
from graphmend.workspace import files
from graphmend.workspace.config import Configurations


def hints(reports: Sequence[FileReport], configurations: Configurations, plan: Plan) -> list[str]:
    """A sentence for each such file of the project's own in which checking it would show something."""
    if plan.changed is not None:
        return []
    here = {report.path for report in reports}
    count: defaultdict[str, set[str]] = defaultdict(set)
    for report in reports:
        for item in report.elsewhere:
            finding = item.finding
            if finding.path not in here and finding.region == "compiled" and not is_installed(finding.path):
                count[finding.path].add(report.path)
    return list(_sentences(count, reports, configurations, plan))


def _sentences(
    callers: dict[str, set[str]], reports: Sequence[FileReport], configurations: Configurations, plan: Plan
) -> Iterator[str]:
    for path in sorted(callers):
        beside = FileReport(path)
        try:
            beside.comments = suppressions.suppressions(Source(files.read(Path(path)).text, path))
        except files.FileProblem:
            continue
        found = len([item for item in shown([*reports, beside], configurations, plan) if item.finding.path == path])
        if found:
            what, shows = ("1 finding", "it") if found == 1 else (f"{found} findings", "them")
            by, name = ", ".join(sorted(map(relative, callers[path]))), relative(path)
            yield f"{what} in {name}, in code that {by} compiles: graphmend check {name} shows {shows}"
