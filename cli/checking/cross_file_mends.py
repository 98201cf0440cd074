"""Mends findings that stand in another file than the code that is compiled.

Each file has mended its own findings by then, maybe in a process of its own. What their checks found in other files is
mended here, one file after the other, in memory; at the end the changed files are written, or their differences shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from graphmend.analysis.syntax.source import Source
from graphmend.cli.checking.file_checker import Checker, unified_diff
from graphmend.cli.checking.file_report import FileReport, Offer, ReportedFinding
from graphmend.cli.checking.plan import Plan
from graphmend.cli.checking.selection import shown
from graphmend.cli.paths import relative
from graphmend.transforms.code.text_edits import apply
from graphmend.workspace import files
from graphmend.workspace.config import Configurations

#: one mend may uncover the next; chains longer than this are not known
_ROUNDS = 10


def mend_across(plan: Plan, configurations: Configurations, reports: Sequence[FileReport]) -> list[FileReport]:
    """The reports as they are when permitted mends of findings in other files are made as well.

    Only files that were named are changed. Where only changed lines count nothing is done: their numbers are those of
    the text before it was mended.
    """
    if plan.changed is not None or not any(report.elsewhere for report in reports):
        return list(reports)
    run = CrossFileMender(plan, configurations, reports)
    for _ in range(_ROUNDS):
        if not run.step():
            break
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
        self.tried: set[tuple[str, str, str]] = set()

    def step(self) -> bool:
        """Mends what may be mended at once; whether anything was."""
        before = len(self.tried)
        stale: set[str] = set()
        for path, items in self._wanted().items():
            stale |= {path, *self._callers(path)} if self._mend(path, items) else set()
        checker = self._checker(self.plan.mends)
        for path in stale & self.reports.keys():
            self._replace(checker.check(Path(path)), checker)
        return len(self.tried) > before

    def _wanted(self) -> dict[str, list[ReportedFinding]]:
        """Findings of other files' checks for which a mend is permitted, by the file they stand in."""
        own = {(item.finding.path, item.finding.key) for r in self.reports.values() for item in r.items}
        found: dict[str, list[ReportedFinding]] = {}
        for item in shown(list(self.reports.values()), self.configurations, self.plan):
            place = (item.finding.path, item.finding.key)
            if place not in own and (offer := self._permitted(item)) and (*place, offer.message) not in self.tried:
                found.setdefault(item.finding.path, []).append(item)
        return found

    def _permitted(self, item: ReportedFinding) -> Offer | None:
        allowed = ("safe", "unsafe") if self.plan.unsafe else ("safe",)
        return next((offer for offer in item.offers if offer.applicability in allowed), None)

    def _mend(self, path: str, items: list[ReportedFinding]) -> bool:
        """Makes the first mend of each item that still applies, as the check of a caller words it now, and keeps it
        where its break is gone then.
        """
        checker = self._checker(mends=True)
        made = False
        for wanted in items:
            offer = self._permitted(wanted)
            assert offer is not None
            self.tried.add((path, wanted.finding.key, offer.message))
            seen = self._seen(path, checker)
            edits = (
                there.edits
                for item in seen
                if item.finding.key == wanted.finding.key
                for there in item.offers
                if there.message == offer.message and there.edits
            )
            first = next(edits, None)
            if first is None:
                continue
            before = self._text(path)
            source = Source(before, path)
            self.texts[path] = apply(before, first, source)
            after = self._checker(mends=True)
            if len(self._seen(path, after)) < len(seen):
                self.changed.add(path)
                self.reports[path].mended += 1
                made, checker = True, after
            else:
                self.texts[path] = before
        return made

    def _seen(self, path: str, checker: Checker) -> list[ReportedFinding]:
        """What the checks of its callers find in a file."""
        found = (item for caller in self._callers(path) for item in checker.check(Path(caller)).elsewhere)
        return [item for item in found if item.finding.path == path]

    def _callers(self, path: str) -> list[str]:
        """The files whose checks find something in a file; those that are not to be checked themselves last."""
        here = (r.path for r in self.reports.values() if any(item.finding.path == path for item in r.elsewhere))
        return list(
            dict.fromkeys((*(caller for caller in here if caller != path), *sorted(self.reports[path].callers)))
        )

    def _checker(self, mends: bool) -> Checker:
        """A checker that has read nothing yet and sees the texts as they are now."""
        return Checker(replace(self.plan, mode="check", cache=False, mends=mends, edits=mends), self.texts)

    def _text(self, path: str) -> str:
        return self.texts[path] if path in self.texts else files.read(path).text

    def _replace(self, report: FileReport, checker: Checker) -> None:
        old = self.reports[report.path]
        report.mended, report.callers, report.diff = old.mended, old.callers, old.diff
        for caller in sorted(old.callers):
            found = checker.check(Path(caller)).elsewhere
            report.elsewhere += [item for item in found if item.finding.path == report.path]
        self.reports[report.path] = report

    def finish(self) -> None:
        """Writes the changed files, or words the differences."""
        for path in sorted(self.changed):
            report = self.reports[path]
            try:
                text = files.read(path)
                if self.plan.mode == "fix":
                    files.replace(path, text.encode(self.texts[path]), expected=text.data)
                else:
                    report.diff = unified_diff(text.text, self.texts[path], relative(path))
            except files.FileProblem as problem:
                report.problems.append(f"{path}: {problem}")
