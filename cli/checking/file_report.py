"""What `check` has to say, as plain data: it crosses processes and the cache on its way to an output format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from graphmend.analysis.finding import Finding, Related
from graphmend.analysis.findings.suppressions import Suppression
from graphmend.analysis.syntax.source import LineIndex
from graphmend.analysis.syntax.span import Span
from graphmend.cli.paths import relative
from graphmend.transforms.fix import Applicability, TextEdit
from graphmend.workspace import files

#: the page of a rule
PAGE = "https://github.com/graphmend/graphmend/blob/main/docs/rules/{code}.md"

#: what is shown of a finding that goes with another one's mend and has none of its own
WITH_ANOTHER = "goes with the mend of another break"


class Offer(NamedTuple):
    """A mend as it is shown. `edits` are made only where a format needs them."""

    applicability: Applicability
    message: str
    reason: str
    edits: tuple[TextEdit, ...] = ()
    differences: tuple[str, ...] = ()
    """The kinds of ways in which a mended program may differ, without repetition."""
    narrows: bool = False
    """The break goes for some values that are known while tracing, and stays for others."""
    behind: bool = False
    """It is made after another mend, or with that of another break, which was tried in its file, for any caller."""


@dataclass(frozen=True)
class ReportedFinding:
    """A finding with what the command line knows beyond it."""

    finding: Finding
    severity: str
    offers: tuple[Offer, ...] = ()
    refusal: str | None = None
    cell: int | None = None
    """In a notebook: the number of the cell that the place is in and counted from."""

    @property
    def place(self) -> str:
        """Path, cell, row and column, as people and error parsers read them."""
        finding = self.finding
        cell = "" if self.cell is None else f"cell {self.cell}:"
        return f"{relative(finding.path)}:{cell}{finding.span.line}:{finding.span.column + 1}"

    @property
    def url(self) -> str:
        return PAGE.format(code=self.finding.code)


@dataclass
class FileReport:
    """What the check of one file found: in that file, whether it is shown or not, and in others on the way."""

    path: str
    items: list[ReportedFinding] = field(default_factory=list)
    elsewhere: list[ReportedFinding] = field(default_factory=list)
    callers: set[str] = field(default_factory=set)
    """Files that were not to be checked themselves, whose checks found something in this one (see `outside`)."""
    comments: tuple[Suppression, ...] = ()
    problems: list[str] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    mended: int = 0
    """How many mends were made: one may answer several findings, or uncover some."""
    gone: int = 0
    """How many findings are not there any more for them."""
    diff: str = ""
    text: str | None = None
    """The mended text."""

    @property
    def checked(self) -> bool:
        """Whether the file was looked at, and not given up."""
        return bool(self.items) or not self.problems


@dataclass
class CheckRun:
    """A whole run, for the output formats: what is shown, what could not be checked, and what was."""

    items: list[ReportedFinding]
    problems: list[str]
    files: list[str]
    mended: int = 0
    gone: int = 0
    """How many findings the mends that were made removed."""
    narrowed: bool = False
    """Whether a baseline or changed lines keep some findings out."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts that are not on disk as they were checked: standard input."""
    cells: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The texts of notebooks' cells, by path and number."""
    verbose: bool = False
    """Whether people are to read all that is known."""
    fixed: bool = False
    """Whether `--fix` has made every mend that it would make."""

    def lines(self, item: ReportedFinding) -> LineIndex:
        """The lines of the file, or cell, that a finding is in; none where it has vanished since."""
        path = item.finding.path
        if item.cell is not None and (cell := self.cells.get((path, item.cell))) is not None:
            return LineIndex(cell)
        if path in self.texts:
            return LineIndex(self.texts[path])
        try:
            return LineIndex(files.read(path).text)
        except files.FileProblem:
            return LineIndex("")


def to_store(report: FileReport) -> dict[str, Any]:
    """A report as JSON data for the cache."""
    return {
        "items": [asdict(item) for item in report.items],
        "elsewhere": [asdict(item) for item in report.elsewhere],
        "comments": [asdict(comment) for comment in report.comments],
        "notes": list(report.notes),
    }


def from_store(path: str, stored: Any) -> FileReport | None:
    """A report from the cache; None where what is stored is not one."""
    try:
        return FileReport(
            path,
            items=[_item(data) for data in stored["items"]],
            elsewhere=[_item(data) for data in stored["elsewhere"]],
            comments=tuple(_comment(data) for data in stored["comments"]),
            notes=tuple(map(str, stored["notes"])),
        )
    except (TypeError, KeyError, ValueError, AttributeError, IndexError):
        return None


def _item(data: dict[str, Any]) -> ReportedFinding:
    offers = (
        Offer(
            *(applicability, message, reason, tuple(TextEdit(Span(*span), text) for span, text in edits)),
            *(tuple(kinds), narrows, behind),
        )
        for applicability, message, reason, edits, kinds, narrows, behind in data["offers"]
    )
    return ReportedFinding(_finding(data["finding"]), data["severity"], tuple(offers), data["refusal"])


def _finding(data: dict[str, Any]) -> Finding:
    related = (Related(path, Span(*span), message) for path, span, message in data["related"])
    changed = {"span": Span(*data["span"]), "evidence": tuple(data["evidence"]), "related": tuple(related)}
    return Finding(**{**data, **changed})


def _comment(data: dict[str, Any]) -> Suppression:
    lines = data["lines"] and tuple(data["lines"])
    return Suppression(**{**data, "span": Span(*data["span"]), "codes": tuple(data["codes"]), "lines": lines})
