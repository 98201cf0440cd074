"""`--output-format full`: for reading. What breaks, the line with carets, and what can be done, in at most `LINES`
lines as wide as the terminal; `--verbose` adds how it is known, all mends and what each changes.

Colour where the output is a terminal, or as `NO_COLOR` and `FORCE_COLOR` say; `COLUMNS` is the width where it is none.
"""

from __future__ import annotations

import os
import re
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from graphmend.cli.paths import relative

if TYPE_CHECKING:
    from graphmend.analysis.syntax.source import LineIndex
    from graphmend.cli.checking.file_report import CheckRun, ReportedFinding

LINES = 6
"""Lines of a finding at most, unless all is asked for."""
WIDTH = 120
"""Columns, where the output is no terminal."""
NARROWEST = 40
"""Columns of a narrower terminal: what does not fit is folded by the terminal itself."""

_EFFECTS = {
    "splits": "splits the graph",
    "skips-frame": "the whole function runs eagerly",
    "recompiles": "compiled again for another value",
    "raises": "raises under fullgraph=True",
}
_ENDING = ": the graph breaks here"
_COLOURS = {"error": "bold red", "warning": "bold yellow", "information": "bold cyan", "hint": "bold blue"}

#: more lines of source than these are not shown, where all is asked for
_LONGEST = 5
_TAB = " " * 4
_CUT = "..."
_BY_WHAT = re.compile(r" \([^()]*\)")


def write(run: CheckRun, out: TextIO) -> None:
    console = Console(file=out, soft_wrap=True, highlight=False, markup=False, emoji=False)
    width = max(console.width if console.is_terminal or "COLUMNS" in os.environ else WIDTH, NARROWEST)
    lines: dict[tuple[str, int | None], LineIndex] = {}
    told: dict[str, str] = {}
    for item in run.items:
        place = item.finding.path, item.cell
        if place not in lines:
            lines = {place: run.lines(item)}  # items come file by file
        console.print(_Block(item, lines[place], width, run.verbose, told).text(), end="\n\n")
    for line in _counts(run, width):
        console.print(Text(line, "dim"))


def _counts(run: CheckRun, width: int) -> Iterator[str]:
    """A line for the rules and one for the files that findings are of, most of them first; none for a few findings."""
    if len(run.items) <= LINES:
        return
    rules = Counter(item.finding.code for item in run.items)
    files = Counter(relative(item.finding.path) for item in run.items)
    for title, counts in (("rules: ", rules), ("files: ", files)):
        entries = [f"{name} {number}" for name, number in sorted(counts.items(), key=lambda e: (-e[1], e[0]))]
        yield title + _listed(entries, width - len(title))


class _Block:
    """What is shown of one finding."""

    def __init__(
        self, item: ReportedFinding, lines: LineIndex, width: int, verbose: bool, told: dict[str, str]
    ) -> None:
        """`told` is the advice that was given before, and where: a rule has one for all its findings, read once."""
        self._item = item
        self._told = told
        self._lines = lines
        self._width = width
        self._verbose = verbose
        last = item.finding.span.end_line if verbose else item.finding.span.line
        self._last = min(last, item.finding.span.line + _LONGEST - 1)
        self._margin = len(str(self._last))

    def text(self) -> Text:
        finding, colour = self._item.finding, _COLOURS[self._item.severity]
        text = Text(self._head())
        text.stylize(colour, 0, len(finding.code))
        text.stylize("bold", len(finding.code), len(f"{finding.code} {finding.name}:"))
        lead, place = f"{'':{self._margin}}--> ", self._item.place
        text.append(f"\n{lead}", "blue").append(place, "bold")
        around = _folded(lead + place + self._where(), self._width, "    ")
        if not self._verbose:  # the source, its carets and what to do come after it
            around = _at_most(LINES - 3 - len(str(text).split("\n")) + 1, around, self._width)
        text.append(around[len(lead + place) :])
        for number in range(finding.span.line, self._last + 1):
            self._source(text, number, colour)
        if self._verbose and self._last < finding.span.end_line:
            text.append(f"\n{'':{self._margin}} | ", "blue").append(_CUT)
        left = None if self._verbose else LINES - str(text).count("\n") - 1
        for heading, says in self._remarks() if self._verbose else self._brief():
            self._remark(text, heading, says, 1 if heading != "advice" and left is not None else left)
        return text

    def _head(self) -> str:
        """What breaks; where that takes a second line, without what every message ends with."""
        whole = f"{self._item.finding.code} {self._item.finding.name}: {self._item.finding.message}"
        short = whole.removesuffix(_ENDING)
        return whole if len(whole) <= self._width else _at_most(2, _folded(short, self._width, "    "), self._width)

    def _where(self) -> str:
        finding = self._item.finding
        cost = "" if finding.effect == "splits" or self._verbose else f": {_EFFECTS[finding.effect]}"
        return f"  in {finding.function} ({finding.region}){cost}" if finding.function else ""

    def _source(self, text: Text, number: int, colour: str) -> None:
        """A line of the source, and carets below the part that is meant; of a long one, the part around them."""
        span, line = self._item.finding.span, self._lines.line(number - 1)
        begin = span.column if number == span.line else len(line) - len(line.lstrip())
        end = span.end_column if number == span.end_line else len(line.rstrip())
        before, marked, after = (part.replace("\t", _TAB) for part in (line[:begin], line[begin:end], line[end:]))
        room = max(self._width - self._margin - 3, 1)
        if cell_len(before + marked + after) > room and not self._verbose:
            before, marked, after = _window(before, marked, after, room)
        more = ""
        if number == self._last and self._last < span.end_line and not self._verbose:
            more = f" to line {span.end_line}"
        text.append(f"\n{number:{self._margin}} | ", "blue").append((before + marked + after).rstrip())
        text.append(f"\n{'':{self._margin}} | ", "blue")
        text.append(" " * cell_len(before) + "^" * max(cell_len(marked), 1) + more, colour)

    def _remark(self, text: Text, heading: str, says: list[str], left: int | None) -> None:
        """A heading and what is said below it, in at most so many lines, where that is limited."""
        indent = " " * (self._margin + len(heading) + 5)
        lead = f"{'':{self._margin}} = {heading}: "
        told = "\n".join(
            _folded((lead if not number else indent) + part, self._width, indent) for number, part in enumerate(says)
        )
        told = told if left is None else _at_most(max(left, 1), told, self._width)
        text.append(f"\n{lead[: self._margin + 3]}", "blue")
        text.append(lead[self._margin + 3 :], "bold").append(told[len(lead) :])

    def _brief(self) -> Iterator[tuple[str, list[str]]]:
        """What to do: the first mend, with the kinds of ways in which it differs; else what a person can write."""
        item = self._item
        if item.offers:
            first = item.offers[0]
            kinds = f"; differs in {', '.join(first.differences)}" if first.differences else ""
            heading, message = f"mend ({first.applicability})", first.message
            room = self._width - self._margin - len(heading) - 5
            if len(message + kinds) > room:  # by what means can be left out
                message = _BY_WHAT.sub("", message)
            if kinds and len(message + kinds) > room:  # in what it differs can't
                lead = "; differs in "
                kinds = lead + _listed(first.differences, max(room - len(message), room // 2) - len(lead))
                message = _at_most(1, f"{message}\n", room - len(kinds)) if len(message + kinds) > room else message
            yield heading, [f"{message}{kinds}"]
        elif advice := item.finding.advice:
            before = self._told.setdefault(advice, item.place)
            yield "advice", [advice if before == item.place else f"as at {before}"]

    def _remarks(self) -> Iterator[tuple[str, list[str]]]:
        """All that is known."""
        item, finding = self._item, self._item.finding
        if finding.evidence:
            yield "because", list(finding.evidence)
        if not finding.code.startswith("GM0"):
            likely = " (likely)" if finding.certainty == "likely" else ""
            flags = "; not with fullgraph=True or the capture flags" if finding.default_flags_only else ""
            known = f" [{finding.gb_id}]" if finding.gb_id else ""
            yield "effect", [f"{_EFFECTS[finding.effect]}{likely}{flags}{known}"]
        for offer in item.offers:
            yield f"mend ({offer.applicability})", [offer.message, *([offer.reason] if offer.reason else [])]
        if finding.advice and not item.offers:
            yield "advice", [finding.advice]
        for place in finding.related:
            if place.message not in finding.evidence:
                yield "see", [f"{relative(place.path)}:{place.span.line}: {place.message}"]
        if item.refusal:
            yield "no mend", [item.refusal]


def _folded(text: str, width: int, indent: str) -> str:
    """A text in lines of at most `width` characters, all but the first behind `indent`."""
    lead = text[: len(text) - len(text.lstrip())]
    wrapped = textwrap.wrap(
        text.lstrip(),
        width,
        initial_indent=lead,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrapped) or text


def _listed(entries: Sequence[str], width: int) -> str:
    """As many entries as a line holds, and how many more there are."""
    shown = len(entries)
    while True:
        rest = len(entries) - shown
        text = ", ".join(entries[:shown]) + (f" and {rest} more" if rest else "")
        if len(text) <= width or shown <= 1:
            return text
        shown -= 1


def _at_most(number: int, text: str, width: int) -> str:
    """The first lines of a text; the last of them says that there are more."""
    lines = text.split("\n")
    if len(lines) <= number:
        return text
    kept = lines[:number]
    kept[-1] = f"{kept[-1][: width - len(_CUT)].rstrip(' ,;')}{_CUT}"
    return "\n".join(kept)


def _window(before: str, marked: str, after: str, room: int) -> tuple[str, str, str]:
    """The part of a long line around what is marked: as much of that as there is room for, then what is around it."""
    code = before.lstrip(" ")
    before = " " * min(len(before) - len(code), 4) + code
    if cell_len(before + marked) > room:
        head = before[: len(before) - len(before.lstrip(" "))]
        kept = max(room - cell_len(marked) - len(head) - 2 * len(_CUT), 8)
        tail = before[len(head) :]
        before = before if cell_len(tail) <= kept else head + _CUT + tail[-kept:]
    space = room - cell_len(before)
    if cell_len(marked) > space:
        return before, set_cell_size(marked, max(space - len(_CUT), 1)) + _CUT, ""
    space -= cell_len(marked)
    if cell_len(after.rstrip()) > space:
        after = set_cell_size(after, max(space - len(_CUT), 0)) + _CUT if space > len(_CUT) else ""
    return before, marked, after
