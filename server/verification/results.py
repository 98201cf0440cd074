"""What checks with TorchDynamo said about one document, and how much of it still holds after edits. No protocol.

A verdict is about a function: an edit anywhere in it makes the verdict stale, an edit elsewhere does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.span import Span
from graphmend.server.documents.open_documents import Document
from graphmend.server.documents.position_mapping import map_span, touched

if TYPE_CHECKING:
    from graphmend.analysis.syntax.source import Source
    from graphmend.dynamo.merge import Verdict
    from graphmend.dynamo.report import Report, TargetReport
    from graphmend.server.analyses.document_analysis import Analysis

STALE = "changed since TorchDynamo checked it"
_KEPT = 8


@dataclass(frozen=True)
class VerificationResult:
    """What one check said about a document, whose text was then at `stamp`."""

    stamp: int
    report: Report
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    only_dynamo: tuple[tuple[Finding, str], ...] = ()
    """GM9 findings, each with the text of its line."""
    functions: Mapping[str, Span] = field(default_factory=dict)
    """Where each function and class then was."""

    @property
    def where(self) -> str:
        """The torch and the device of the check."""
        devices = dict.fromkeys(target.device for target in self.report.targets if target.device)
        return ", ".join([f"torch {self.report.torch.partition('+')[0]}", *devices])

    def is_stale(self, document: Document, function: str) -> bool:
        """Whether a function, or class, was edited since."""
        moves, span = document.moves(self.stamp), self.functions.get(function)
        return moves is None or (span is not None and touched(span, moves))

    def findings(self, document: Document) -> Iterator[Finding]:
        """The breaks that only Dynamo saw, where they are now; one whose line was edited is gone."""
        moves = document.moves(self.stamp)
        for finding, text in self.only_dynamo if moves is not None else ():
            span = map_span(finding.span, moves or ())
            if span is not None and document.text.line(span.line - 1).strip() == text:
                yield replace(finding, span=span)

    def says(self, document: Document, finding: Finding) -> tuple[Verdict | None, str]:
        """The verdict on a finding, and in a few words."""
        verdict = self.verdicts.get(finding.key)
        if verdict is None and not any(finding.key == own.key for own, _ in self.only_dynamo):
            return None, ""
        if self.is_stale(document, finding.function):
            return None, STALE
        if verdict is None:
            return None, ""
        if verdict.state == "not reached":
            return verdict, "not reached by the check"
        if verdict.state == "runs eagerly":
            return verdict, verdict.brief
        return verdict, f"{verdict.state} by TorchDynamo, {self.where}"


class History:
    """The checks of one document, newest first: a later check of another target leaves the earlier ones' verdicts."""

    def __init__(self) -> None:
        self._checks: list[VerificationResult] = []

    def add(self, checked: VerificationResult) -> None:
        names = {target.name for target in checked.report.targets}
        kept = [c for c in self._checks if not {t.name for t in c.report.targets} <= names]
        self._checks = [checked, *kept][:_KEPT]

    def findings(self, document: Document) -> list[Finding]:
        """The breaks that only Dynamo saw, each once."""
        found: dict[str, Finding] = {}
        for checked in self._checks:
            for finding in checked.findings(document):
                found.setdefault(finding.key, finding)
        return list(found.values())

    def says(self, document: Document, finding: Finding) -> tuple[Verdict | None, str]:
        """The newest verdict; one that says more than "not reached" before one that does not."""
        if not self._checks:
            return None, ""
        answers = [checked.says(document, finding) for checked in self._checks]
        answers = [answer for answer in answers if answer[1]]
        telling = (answer for answer in answers if answer[0] is not None and answer[0].state != "not reached")
        return next(telling, answers[0] if answers else (None, ""))

    def target(self, document: Document, name: str) -> TargetReport | None:
        """The newest report on a class or function that was not edited since."""
        for checked in self._checks:
            for target in checked.report.targets:
                if target.name.partition(".")[0] == name and not checked.is_stale(document, name):
                    return target
        return None


def checked(source: Source, analysis: Analysis, report: Report) -> VerificationResult:
    """A report on a text, with the findings of that text."""
    from graphmend.analysis.findings.suppressions import suppressions
    from graphmend.dynamo.merge import Statements, merge

    merged = merge(source, analysis.findings, report)
    comments = suppressions(source)
    kept = [f for f in merged.only_dynamo if not any(c.covers(f) and c.names(f.code) for c in comments)]
    return VerificationResult(
        analysis.stamp,
        report,
        {finding.key: verdict for finding, verdict in zip(analysis.findings, merged.verdicts, strict=True)},
        tuple((finding, source.lines.line(finding.span.line - 1).strip()) for finding in kept),
        Statements(source).definitions,
    )
