"""The static side of `graphmend verify`: a file's mended text, and its findings with TorchDynamo's verdict on each."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.project import Project
from graphmend.analysis.source import Source
from graphmend.cli.failures import UsageError
from graphmend.dynamo.merge import merge
from graphmend.dynamo.report import Report
from graphmend.workspace import files, interpreter
from graphmend.workspace.config import Configuration
from graphmend.workspace.environment import Environment, package_root


class Judged(NamedTuple):
    """A finding; `state` is `confirmed`, `not seen`, `not reached`, or `only TorchDynamo`: the analysis missed it."""

    finding: Finding
    state: str
    reason: str


class Static:
    """One file on disk, seen by the analysis."""

    def __init__(self, path: Path, configuration: Configuration, python: str | None) -> None:
        self.path = path
        self.configuration = configuration
        self.interpreter = interpreter_for(python, package_root(path))
        self.settings = configuration.settings(self.interpreter.torch_version)

    @cached_property
    def source(self) -> Source:
        try:
            return Source(files.read(self.path).text, str(self.path))
        except files.FileProblem as problem:
            raise UsageError(f"{self.path}: {problem}") from None

    @cached_property
    def project(self) -> Project:
        return Project(Environment(package_root(self.path), (self.configuration.root,), self.interpreter))

    def mended(self, unsafe: bool) -> str:
        """The text with every permitted mend applied; the text as it is where none applies."""
        from graphmend.transforms.mend import mend_all

        return mend_all(self.source, self.project, self.settings, unsafe=unsafe).source.text

    def judged(self, report: Report) -> list[Judged]:
        """Findings of the file in order of the text, those that only TorchDynamo saw included."""
        findings = check(self.source, self.project, self.settings).findings
        merged = merge(self.source, findings, report)
        judged = [Judged(f, v.state, v.reason) for f, v in zip(findings, merged.verdicts, strict=True)]
        judged += [Judged(f, "only TorchDynamo", "the analysis did not foresee it") for f in merged.only_dynamo]
        return sorted(judged, key=lambda item: item.finding.span)


def interpreter_for(python: str | None, folder: Path) -> interpreter.Interpreter:
    """The interpreter given by a path, else the one that the project in a folder most likely uses."""
    named = interpreter.at(Path(python)) if python else None
    return named or interpreter.nearest(folder)
