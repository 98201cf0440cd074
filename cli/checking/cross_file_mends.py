"""Mends findings that stand in another file than the code that is compiled.

Each file has mended its own findings by then, maybe in a process of its own. What their checks found in other files is
mended here: a file together with all that call into it, in memory, so that a mend is right for every caller. At the end
the changed files are written, or their differences shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Sequence
from dataclasses import replace
from pathlib import Path

from graphmend.analysis.check import Result, check
from graphmend.analysis.finding import Finding
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.cli.checking.file_checker import Checker, diff_of, in_style
from graphmend.cli.checking.file_report import FileReport, ReportedFinding
from graphmend.cli.checking.plan import Plan
from graphmend.cli.checking.selection import Wanted, shown
from graphmend.cli.failures import internal_error
from graphmend.workspace import files
from graphmend.workspace.config import Configurations
from graphmend.workspace.notebooks import reading


def mend_across(plan: Plan, configurations: Configurations, reports: Sequence[FileReport]) -> list[FileReport]:
    """The reports as they are when permitted mends of findings in other files are made as well.

    Only files that were named are changed. Where only changed lines count nothing is done: their numbers are those of
    the text before it was mended.
    """
    if plan.changed is not None or not any(report.elsewhere for report in reports):
        return list(reports)
    run = CrossFileMender(plan, configurations, reports)
    for paths in run.groups():
        run.mend(paths)
    run.finish()
    return list(run.reports.values())


class CrossFileMender:
    """The texts and reports of all files while they are mended."""

    def __init__(self, plan: Plan, configurations: Configurations, reports: Sequence[FileReport]) -> None:
        self.plan = plan
        self.configurations = configurations
        self.reports = {report.path: report for report in reports}
        self.texts = {report.path: report.text for report in reports if report.text is not None}
        self.changed: set[str] = set()
        self._callers: dict[str, set[str]] = {report.path: set(report.callers) for report in reports}
        """By file: those whose checks find something in it, named or not."""
        for report in reports:
            for item in report.elsewhere:
                if item.finding.path in self.reports and item.finding.path != report.path:
                    self._callers[item.finding.path].add(report.path)

    def groups(self) -> list[list[str]]:
        """The files to check together, in order: those with a mend that callers ask for, and all that reach them."""
        of_path: dict[str, set[str]] = {}
        for path in self._wanted():
            group = {path, *self._callers[path]}
            for known in list({id(of_path[member]): of_path[member] for member in group if member in of_path}.values()):
                group |= known
            of_path.update(dict.fromkeys(group, group))
        return [sorted(group) for group in {id(group): group for group in of_path.values()}.values()]

    def _wanted(self) -> list[str]:
        """The files in which the checks of others find something for which a mend is permitted."""
        own = {(item.finding.path, item.finding.key) for r in self.reports.values() for item in r.items}
        found = shown(list(self.reports.values()), self.configurations, self.plan)
        others = (item for item in found if (item.finding.path, item.finding.key) not in own)
        return sorted({item.finding.path for item in others if self._is_permitted(item)})

    def _is_permitted(self, item: ReportedFinding) -> bool:
        allowed = ("safe", "unsafe") if self.plan.unsafe else ("safe",)
        return any(offer.applicability in allowed for offer in item.offers)

    def mend(self, paths: Sequence[str]) -> None:
        """Mends some files together."""
        from graphmend.transforms.offers import distinct
        from graphmend.transforms.rounds import Run

        checker = Checker(self.plan, self.texts)
        before = {path: checker.source(Path(path)).text for path in paths if path in self.reports}
        together = _Together(checker, paths, before)
        try:
            run = Run(together, together.wanted)
            run.to_the_end(self.plan.unsafe)
        except Exception as error:
            self.reports[paths[0]].problems.append(f"{paths[0]}: {internal_error(error)}")
            return
        mends = Counter(one.finding.path for one in distinct(run.applied))
        changed = mends.keys()
        self.texts.update({path: in_style(before[path], run.state.sources[path].text, path) for path in changed})
        self.changed |= changed
        if not changed:
            return
        checker = Checker(replace(self.plan, mode="check", cache=False), self.texts)
        for path in paths:
            if path in self.reports:
                self._replace(checker.check(Path(path)), checker, mends[path])

    def _replace(self, report: FileReport, checker: Checker, mends: int) -> None:
        old = self.reports[report.path]
        report.mended, report.callers, report.diff = old.mended + mends, old.callers, old.diff
        report.gone = old.gone + mends
        report.problems = [*old.problems, *report.problems]
        for caller in sorted(old.callers):
            found = checker.check(Path(caller)).elsewhere
            report.elsewhere += [item for item in found if item.finding.path == report.path]
        self.reports[report.path] = report

    def finish(self) -> None:
        """Writes the changed files, or words the differences."""
        for path in sorted(self.changed):
            report = self.reports[path]
            try:
                text = reading.read(path)
                if self.plan.mode == "fix":
                    files.replace(path, text.encode(self.texts[path]), expected=text.data)
                else:
                    report.diff = diff_of(text, self.texts[path], path)
            except files.FileProblem as problem:
                report.problems.append(f"{path}: {problem}")


class _Together:
    """Files that are checked together, as the loop of mending sees them. Only `named` ones are changed."""

    def __init__(self, checker: Checker, paths: Sequence[str], named: Container[str]) -> None:
        self.checked = paths
        self._checker, self._named = checker, named
        self._wanted: dict[str, Wanted] = {}

    def check(self, path: str) -> Result:
        return check(self._checker.source(Path(path)), self._checker.project(Path(path)), self._settings(path))

    def accepted(self, path: str) -> Collection[str]:
        return tuple(self._checker.configurations.of_file(Path(path))["accept"])

    def source(self, path: str) -> Source | None:
        return self._checker.source(Path(path)) if path in self._named else None

    def replace(self, source: Source) -> None:
        self._checker.replace(source, self.checked)

    def wanted(self, source: Source, findings: Sequence[Finding]) -> list[Finding]:
        """What the command would show of the findings in a file."""
        if (wanted := self._wanted.get(source.path)) is None:
            path = Path(source.path)
            configuration = self._checker.configurations.of_file(path)
            wanted = Wanted(self._checker.plan, self._settings(source.path), configuration, path)
            self._wanted[source.path] = wanted
        return wanted(source, findings)

    def _settings(self, path: str) -> Settings:
        return self._checker.settings(Path(path))
