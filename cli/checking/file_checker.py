"""Checks one file and mends it where that was asked for; alike in the command's own process and in its workers."""

from __future__ import annotations

import difflib
import gc
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from graphmend.analysis.check import Result, check
from graphmend.analysis.finding import Finding
from graphmend.analysis.findings import suppressions
from graphmend.analysis.program.project import Project
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
from graphmend.cli.checking.file_report import WITH_ANOTHER, FileReport, Offer, ReportedFinding, from_store, to_store
from graphmend.cli.checking.plan import Plan
from graphmend.cli.checking.selection import Wanted, severity_of
from graphmend.cli.failures import internal_error
from graphmend.cli.paths import relative
from graphmend.workspace import files, interpreter
from graphmend.workspace.cache import Cache, digest
from graphmend.workspace.config import Configuration
from graphmend.workspace.interpreter import Interpreter, torch_remarks
from graphmend.workspace.module_loader import ModuleLoader, package_root, surroundings
from graphmend.workspace.notebooks import reading

if TYPE_CHECKING:
    from graphmend.transforms.fix import Applicability, Difference
    from graphmend.transforms.mend import Outcome


class _Place(NamedTuple):
    """What a file's folder is imported from, what its analysis may depend on, and the project that it belongs to."""

    root: Path
    near: Path
    project: Path


class Checker:
    """Checks files one after the other; modules that neighbours import are read once."""

    def __init__(self, plan: Plan, texts: Mapping[str, str] | None = None) -> None:
        """`texts` stand in for files on disk, by path."""
        self.plan = plan
        self.texts = dict(texts or {})
        self.configurations = plan.configurations()
        self._projects: dict[Path, Project] = {}
        self._interpreters: dict[Path, Interpreter] = {}
        self._places: dict[Path, _Place] = {}

    def check(self, path: Path) -> FileReport:
        """The report of a file on disk; a failure of ours is part of the report."""
        report = self._check_file(path)
        gc.collect(0)  # the file's own trees and values; what it imports grows old, is kept, and not looked at again
        return report

    def _check_file(self, path: Path) -> FileReport:
        try:
            text = reading.read(path)
        except files.TooLong as skipped:
            return FileReport(str(path), notes=(f"{path} {skipped}",))
        except files.FileProblem as problem:
            return FileReport(str(path), problems=[f"{path}: {problem}"])
        if (instead := self.texts.get(str(path))) is not None:
            text = replace(text, text=instead)
        report = self.check_text(text, path)
        if report.text is not None and self.plan.mode == "fix":
            try:
                files.replace(path, text.encode(report.text), expected=text.data)
            except files.FileProblem as problem:
                return FileReport(str(path), problems=[f"{path}: {problem}"])
        if self.plan.mode != "diff":
            report.text = None
        return report

    def check_text(self, text: files.FileText, path: Path) -> FileReport:
        """The report of a text that stands, or would stand, at `path`."""
        try:
            return self._check(text, path)
        except RecursionError:
            return FileReport(str(path), problems=[f"{path}: nested too deeply to analyse"])
        except Exception as error:
            return FileReport(str(path), problems=[f"{path}: {internal_error(error)}"])

    def _check(self, text: files.FileText, path: Path) -> FileReport:
        configuration = self.configurations.of_file(path)
        entry = self._cache_entry(text, path, configuration)
        report = from_store(str(path), self._cache.load(*entry)) if entry is not None else None
        if report is None:
            report = self._analyse(Source(text.text, str(path)), path, configuration)
            if report.text is not None and self.plan.mode == "diff":
                report.diff = diff_of(text, report.text, str(path))
            if entry is not None and not report.problems:
                self._cache.store(*entry, to_store(report))
        left_out = text.notes if isinstance(text, reading.NotebookText) else ()
        report.notes = (*configuration.notes, *(f"{path}: {note}" for note in left_out), *report.notes)
        return report

    def _analyse(self, source: Source, path: Path, configuration: Configuration) -> FileReport:
        report = FileReport(str(path))
        project, settings = self.project(path), self.settings(path)
        if source.tree is None and (problem := source.problem) is not None:
            where = f"{path}:{problem.line}:{problem.column + 1}"
            report.problems.append(f"{where}: does not parse: {problem.message}")
            return report
        if self.plan.mode != "check":
            source = self._mend(source, project, settings, configuration, report)
        result = check(source, project, settings)
        for finding in result.findings:
            offers, refusal = self._offers(result, finding, report) if self.plan.mends else ((), None)
            report.items.append(ReportedFinding(finding, severity_of(finding, configuration), offers, refusal))
        for finding in (finding for findings in result.elsewhere.values() for finding in findings):
            asked = self.plan.mends or self.plan.mode != "check"
            offers, refusal = self._offers(result, finding, report) if asked else ((), None)
            there = self.configurations.of_file(Path(finding.path))
            report.elsewhere.append(ReportedFinding(finding, severity_of(finding, there), offers, refusal))
        self._try(source, project, settings, configuration, report)
        report.notes = (*self._on_torch(path, source), *(f"{path}: {note}" for note in result.notes))
        report.comments = suppressions.suppressions(source)
        result.close()
        return report

    def _offers(self, result: Result, finding: Finding, report: FileReport) -> tuple[tuple[Offer, ...], str | None]:
        """The mends of a finding, and why there is none. A rewrite that fails costs its finding the mends only."""
        from graphmend.transforms.fix import Fix, Refusal
        from graphmend.transforms.mend import mend

        try:
            accept = self.configurations.of_file(Path(finding.path))["accept"]
            answers = mend(finding, result.facts(finding), accept)
            offers = tuple(self._offer(answer) for answer in answers if isinstance(answer, Fix))
        except Exception as error:
            report.problems.append(f"{finding.path}:{finding.span.line}: {internal_error(error)}")
            return (), None
        refusals = [answer.reason for answer in answers if isinstance(answer, Refusal)]
        reason = refusals[0] if refusals else "no rewrite is known for this break"
        return offers, None if offers else reason

    def _try(
        self, source: Source, project: Project, settings: Settings, configuration: Configuration, report: FileReport
    ) -> None:
        """Leaves those mends among the offers that `--fix` would make: a break may stay all the same, be moved, or go
        with the mend of another one.
        """
        if not any(offer.applicability != "display" for item in report.items for offer in item.offers):
            return
        from graphmend.transforms.mend import outcome

        wanted = Wanted(self.plan, settings, configuration, Path(source.path))
        restricted = wanted if wanted.restricts(source) else None
        try:
            found = outcome(source, project, settings, wanted=restricted, accept=configuration["accept"])
        except Exception as error:
            report.problems.append(f"{source.path}: {internal_error(error)}")
            return
        finally:
            project.forget(source.path)
        report.items[:] = [self._tried(item, found) for item in report.items]

    def _tried(self, item: ReportedFinding, found: Outcome) -> ReportedFinding:
        """A finding with the offers that would be made."""
        key, shown = item.finding.key, tuple(o for o in item.offers if o.applicability == "display")
        narrowing = tuple(o for o in item.offers if o.narrows and key in found.narrowed)
        made: Applicability | None = "safe" if key in found.safe else "unsafe" if key in found.unsafe else None
        if made is None:
            if len(shown) == len(item.offers):
                return item
            reason = found.left.get(key) or "no mend removes the break"
            return replace(item, offers=narrowing + shown, refusal=None if shown else item.refusal or reason)
        offers = item.offers
        if made == "unsafe" and (last := found.finally_by.get(key)) is not None:  # what it offers itself is not enough
            offers = (
                self._offer(last)._replace(edits=(), behind=True),
                *(o for o in offers if o.applicability != "safe"),
            )
        offers = tuple(o if made == "safe" or o in narrowing else _along(o) for o in offers)
        offers = tuple(_and_what_follows(o, found.along.get((key, o.message), ())) for o in offers)
        if made not in {o.applicability for o in offers if o not in narrowing}:
            offers = (Offer(made, WITH_ANOTHER, "it is made by that mend", behind=True), *offers)
        return replace(item, offers=offers, refusal=None)

    def _offer(self, fix: Any) -> Offer:
        from graphmend.transforms.fix import Unmendable

        edits = ()
        if self.plan.edits and fix.applicability != "display":
            try:
                edits = fix.edits()
            except Unmendable:
                edits = ()
        kinds = tuple(dict.fromkeys(difference.kind for difference in fix.differences))
        return Offer(fix.applicability, fix.title, fix.reason, edits, kinds, fix.narrows)

    def _mend(
        self, source: Source, project: Project, settings: Settings, configuration: Configuration, report: FileReport
    ) -> Source:
        from graphmend.transforms.mend import mend_all

        wanted = Wanted(self.plan, settings, configuration, Path(source.path))
        restricted = wanted if wanted.restricts(source) else None
        accept = configuration["accept"]
        mended = mend_all(source, project, settings, unsafe=self.plan.unsafe, wanted=restricted, accept=accept)
        if not mended.changed:
            return source
        report.mended, report.gone = mended.mends, mended.gone
        report.text = in_style(source.text, mended.source.text, source.path)
        project.forget(source.path)
        return Source(report.text, source.path)

    def source(self, path: Path) -> Source:
        """A file's text as the checks read it. Raises `FileProblem`."""
        text = self.texts.get(str(path))
        return Source(reading.read(path).text if text is None else text, str(path))

    def replace(self, source: Source, importing: Iterable[str]) -> None:
        """Takes a text in place of the one on disk, which the files in `importing` read, too. From now on every check
        reads it.
        """
        self.texts[source.path] = source.text
        for project in self._projects.values():
            project.forget(source.path, *importing)

    def project(self, path: Path) -> Project:
        """What a file belongs to: the modules that it may import, as far as they have been read."""
        root, _, folder = self._place(path)
        if root not in self._projects:
            self._projects[root] = Project(ModuleLoader(root, (folder,), self._interpreter(root), self.texts))
        return self._projects[root]

    def _place(self, path: Path) -> _Place:
        """Where a file belongs; asked once for each folder."""
        if (known := self._places.get(path.parent)) is None:
            root, configuration = package_root(path), self.configurations.of_file(path)
            known = self._places[path.parent] = _Place(root, surroundings(path), _project_folder(root, configuration))
        return known

    def settings(self, path: Path) -> Settings:
        """What decides which findings a file has."""
        version = self._interpreter(self._place(path).root).torch_version
        return self.configurations.of_file(path).settings(version)

    def _on_torch(self, path: Path, source: Source) -> Iterator[str]:
        """What is to be said of the torch that a file is checked against; nothing where it says nothing of torch."""
        if "torch" not in source.text:
            return iter(())
        wanted = self.configurations.of_file(path)["torch-version"]
        return torch_remarks(
            self._interpreter(self._place(path).root), wanted, named=self._given_interpreter is not None
        )

    def _interpreter(self, root: Path) -> Interpreter:
        if root not in self._interpreters:
            self._interpreters[root] = self._given_interpreter or interpreter.nearest(root)
        return self._interpreters[root]

    @cached_property
    def _given_interpreter(self) -> Interpreter | None:
        return interpreter.at(self.plan.python) if self.plan.python is not None else None

    @cached_property
    def _cache(self) -> Cache:
        return Cache()

    def _cache_entry(self, text: files.FileText, path: Path, configuration: Configuration) -> tuple[str, str] | None:
        """(name, stamp) of this check in the cache; None where it may not be used."""
        if not self.plan.cache or self.plan.mode != "check":
            return None
        root, near, project = self._place(path)
        # an installed package stands alone; what else is installed is in the interpreter's stamp
        around = self._cache.stamp((near,) if near != root else (root, project), self._interpreter(root))
        if around is None:
            return None
        options = repr((sorted(configuration.values.items()), self.plan.mends, self.plan.edits))
        return digest(str(path), options), digest(text.data, str(configuration.root), around)


def _along(offer: Offer) -> Offer:
    """A mend that is made only where unsafe ones are made too: alone it would leave the break, or stand in the way."""
    if offer.applicability != "safe":
        return offer
    return offer._replace(applicability="unsafe", reason="it is made along with an unsafe mend of another break")


def _and_what_follows(offer: Offer, differences: Iterable[Difference]) -> Offer:
    """A mend as it differs with those that are made after it."""
    reason = "; ".join(dict.fromkeys((*offer.reason.split("; "), *(d.says for d in differences))))
    kinds = tuple(dict.fromkeys((*offer.differences, *(d.kind for d in differences))))
    return offer._replace(reason=reason, differences=kinds) if kinds != offer.differences else offer


def _project_folder(root: Path, configuration: Configuration) -> Path:
    """The folder that a package belongs to, whose other packages it may import."""
    if configuration.file is not None:
        return configuration.root
    if root.name in ("site-packages", "dist-packages"):
        return root
    marked = (folder for folder in (root, *root.parents) for mark in MARKS if (folder / mark).exists())
    return next(marked, root)


#: what a project's folder holds
MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg")


def in_style(before: str, after: str, path: str) -> str:
    """A mended text as the file's project writes its code."""
    from graphmend.transforms.style.finish import finished
    from graphmend.workspace.code_style import code_style

    style = code_style(Path(path))
    return finished(before, after, path, line_length=style.line_length, formatted=style.formatted)


def diff_of(text: files.FileText, after: str, path: str) -> str:
    """What mending changes in a file, or in each cell of a notebook. Raises `FileProblem`."""
    name = relative(path)
    if not isinstance(text, reading.NotebookText):
        return unified_diff(text.text, after, name)
    cells = text.changed(after)
    return "".join(
        unified_diff("\n".join(cell.lines) + "\n", "\n".join(lines) + "\n", f"{name}:cell {cell.number}")
        for cell, lines in cells
    )


def unified_diff(before: str, after: str, path: str) -> str:
    """What mending changes, as `diff -u` shows it."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    parts = []
    for line in difflib.unified_diff(old, new, path, path):
        parts.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(parts)
