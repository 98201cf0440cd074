"""`--output-format full`: for reading. The source with carets, what is known and why, and what can be done.

Colour where the output is a terminal, or as `NO_COLOR` and `FORCE_COLOR` say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from graphmend.cli.paths import relative

if TYPE_CHECKING:
    from graphmend.analysis.syntax.source import LineIndex
    from graphmend.cli.checking.file_report import CheckRun, ReportedFinding

_EFFECTS = {
    "splits": "splits the graph",
    "skips-frame": "the whole function runs eagerly",
    "recompiles": "every new value compiles again",
    "raises": "raises under fullgraph=True",
}
_COLOURS = {"error": "bold red", "warning": "bold yellow", "information": "bold cyan", "hint": "bold blue"}

#: more lines of a finding than these are not shown
_LONGEST = 5
_TAB = " " * 4


def write(run: CheckRun, out: TextIO) -> None:
    console = Console(file=out, soft_wrap=True, highlight=False, markup=False, emoji=False)
    lines: dict[str, LineIndex] = {}
    for item in run.items:
        path = item.finding.path
        if path not in lines:
            lines = {path: run.lines(path)}  # items come file by file
        console.print(_block(item, lines[path]), end="\n\n")


def _block(item: ReportedFinding, lines: LineIndex) -> Text:
    finding, span = item.finding, item.finding.span
    first, last = max(span.line - 1, 1), min(span.end_line, span.line + _LONGEST - 1)
    margin = len(str(last))
    text = Text()
    text.append(finding.code, _COLOURS[item.severity]).append(f" {finding.name}: ", "bold").append(finding.message)
    text.append(f"\n{'':{margin}}--> ", "blue")
    text.append(f"{relative(finding.path)}:{span.line}:{span.column + 1}", "bold")
    if finding.function:
        text.append(f"  in {finding.function} ({finding.region})")
    text.append(f"\n{'':{margin}} |", "blue")
    for number in range(first, last + 1):
        line = lines.line(number - 1)
        text.append(f"\n{number:{margin}} | ", "blue").append(line.replace("\t", _TAB))
        if number >= span.line:
            start = span.column if number == span.line else len(line) - len(line.lstrip())
            end = span.end_column if number == span.end_line else len(line.rstrip())
            text.append(f"\n{'':{margin}} | ", "blue").append(_carets(line, start, end), _COLOURS[item.severity])
    if last < span.end_line:
        text.append(f"\n{'':{margin}} | ", "blue").append("...")
    text.append(f"\n{'':{margin}} |", "blue")
    for name, says in _remarks(item):
        text.append(f"\n{'':{margin}} = ", "blue").append(f"{name}: ", "bold").append(says[0])
        indent = " " * (margin + len(name) + 5)
        text.append("".join(f"\n{indent}{more}" for more in says[1:]))
    return text


def _carets(line: str, start: int, end: int) -> str:
    """Carets under a part of a line, as wide as the terminal shows it."""
    before, marked = (part.replace("\t", _TAB) for part in (line[:start], line[start:end]))
    return " " * cell_len(before) + "^" * max(cell_len(marked), 1)


def _remarks(item: ReportedFinding) -> list[tuple[str, Sequence[str]]]:
    """What is said below the source: a heading and at least one line."""
    finding = item.finding
    remarks: list[tuple[str, Sequence[str]]] = []
    if finding.evidence:
        remarks.append(("because", finding.evidence))
    if not finding.code.startswith("GM0"):
        likely = " (likely)" if finding.certainty == "likely" else ""
        flags = "; not with fullgraph=True or the capture flags" if finding.default_flags_only else ""
        known = f" [{finding.gb_id}]" if finding.gb_id else ""
        remarks.append(("effect", [f"{_EFFECTS[finding.effect]}{likely}{flags}{known}"]))
    if finding.advice:
        remarks.append(("advice", [finding.advice]))
    for place in finding.related:
        if place.message not in finding.evidence:
            remarks.append(("see", [f"{relative(place.path)}:{place.span.line}: {place.message}"]))
    for offer in item.offers:
        remarks.append((f"mend ({offer.applicability})", [offer.message, *([offer.reason] if offer.reason else [])]))
    if item.refusal:
        remarks.append(("no mend", [item.refusal]))
    return remarks
