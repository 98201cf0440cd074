"""`graphmend verify --output-format full`: what was run, each break with its line of source, and before beside
after: a few lines a break, as wide as the terminal. `--verbose` adds every hint, frame, run and difference.
"""

from __future__ import annotations

import os
import shlex
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from graphmend.cli.control_characters import printable
from graphmend.cli.output.full import NARROWEST, WIDTH
from graphmend.cli.paths import relative
from graphmend.cli.places import line, place, row
from graphmend.dynamo.merge import NOT_CALLED
from graphmend.dynamo.report import compilations
from graphmend.dynamo.verdict import judge

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.cli.verifying.static_findings import Judged, Mending
    from graphmend.dynamo.comparison import Comparison
    from graphmend.dynamo.report import Batch, Break, Recompile, Report, RunInfo, TargetReport
    from graphmend.dynamo.watched_command import Watched

EFFECTS = {
    "break": "splits the graph",
    "skip": "the whole frame runs eagerly",
    "raises": "raises under fullgraph=True",
    "error": "TorchDynamo fails",
}

LINES, FEW = 20, 3
"""Differences of a target that are shown, in full and in brief; there may be some for each run."""
_CUT = " ..."


class Page:
    """A terminal, where there is one, shows styles; a file or a pipe gets the bare text. Lines of a brief page are cut
    where the terminal ends, and hints folded there.
    """

    def __init__(self, out: TextIO, *, verbose: bool) -> None:
        self._console = Console(file=out, soft_wrap=True, highlight=False, markup=False, emoji=False)
        self._width = max(
            self._console.width if self._console.is_terminal or "COLUMNS" in os.environ else WIDTH, NARROWEST
        )
        self.verbose = verbose
        self._hints: set[str] = set()
        self._told: list[Break] = []

    def is_told(self, item: Break) -> bool:
        """Whether the page has a break already, of another target or before its mends: it is told whole once."""
        whole = replace(item, count=1, run=0)
        if whole in self._told:
            return True
        self._told.append(whole)
        return False

    def hints(self, texts: Sequence[str]) -> None:
        """TorchDynamo gives the same hints with each break of a kind: each is read once. In brief, the first alone."""
        for text in texts if self.verbose else texts[:1]:
            if text in self._hints:
                continue
            self._hints.add(text)
            said = f"hint: {text}"
            folded = textwrap.wrap(said, self._width - 6, subsequent_indent=" " * 6)
            for part in [said] if self.verbose else folded:
                self.write(f"      {part}\n", "dim")

    def write(self, text: str, style: str | None = None) -> None:
        """One line, with its end."""
        text = printable(text)
        if not self.verbose:
            text = f"{_cut(text.rstrip().replace(chr(10), ' '), self._width)}\n"
        self._console.print(Text(text, style or ""), end="")

    def write_whole(self, text: str) -> None:
        """A line that is never cut: what its end says matters."""
        self._console.print(Text(printable(text)), end="", soft_wrap=True)

    def write_both(self, first: str, second: str) -> None:
        """Two texts on one line, or on one each where a brief page is too narrow."""
        whole = f"{first}  {second}"
        if self.verbose or cell_len(whole) <= self._width:
            self.write(f"{whole}\n")
        else:
            self.write(f"{first}\n")
            self.write(f"            {second}\n")

    def write_around(self, before: str, text: str, after: str) -> None:
        """One line, of which a brief page cuts the middle, down to its first word."""
        room = self._width - cell_len(before) - cell_len(after)
        if not self.verbose and room < cell_len(text):
            text = _cut(text, room) if room > NARROWEST // 2 else text.split(" ", 1)[0]
        self.write(f"{before}{text}{after}\n")


def _cut(text: str, width: int) -> str:
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - len(_CUT)).rstrip(" ,;") + _CUT


def write(
    reports: Sequence[Report],
    judged: Sequence[Sequence[Judged]],
    mendings: Sequence[Mending | None],
    to: TextIO,
    *,
    verbose: bool = False,
) -> None:
    out = Page(to, verbose=verbose)
    for report, findings, mending in zip(reports, judged, mendings, strict=True):
        for target in report.targets:
            if target.problem is None:
                _target(target, report, mending, out)
        if any(target.problem is None for target in report.targets):
            _judged(findings, report.path, out)
    for note in dict.fromkeys(r.note for r in reports if any(t.device == "cpu" for t in r.targets)):
        if note and not all(r.torch.endswith("+cpu") for r in reports if r.note == note):  # the version says it already
            out.write(f"on the CPU: {note}\n")
    for remark in dict.fromkeys(r.remark for r in reports if r.remark):
        out.write_whole(f"{remark}\n")


def _target(target: TargetReport, report: Report, mending: Mending | None, out: Page) -> None:
    out.write(f"{relative(report.path)}: {target.name}\n", "bold")
    out.write_both(f"  ran       {target.inputs}", f"[{target.origin}; {target.device}; torch {report.torch}]")
    also = [run.inputs + _raised(run, out.verbose) for run in target.runs[1:]]
    for text in also if out.verbose or not also else ["; ".join(also)]:
        out.write(f"  also with {text}\n")
    out.write(f"  result    {_result(target)}\n", _colour(not target.breaks))
    for note in target.notes:
        out.write(f"  note      {note}\n")
    for item in target.breaks:
        _break(item, out)
    for recompile in target.recompiles:
        _recompile(recompile, out)
    _varied(target, out)
    after = None if report.after is None else next((t for t in report.after.targets if t.name == target.name), None)
    if mending is not None and not mending.made:
        out.write(f"  mended    nothing{_unsafe(mending)}\n", _colour(not target.breaks))
    elif after is not None and after.problem is None:
        out.write(f"  mended    {_result(after)}{_unsafe(mending)}\n", _colour(not after.breaks))
        for item in after.breaks:
            _break(item, out)
    if after is not None and after.comparison is not None:
        _comparison(after.comparison, report.after.named if report.after is not None else (), out)
    for title, batches in (("batches", target.batches), ("mended", after.batches if after is not None else ())):
        if batches:
            _batches(title, batches, out)
    for title, times in (("times", target.times), ("mended", after.times if after is not None else None)):
        if times is not None:
            steady = f"eager {times.eager:.3g} ms, compiled {times.compiled:.3g} ms"
            syncs = "" if times.syncs is None else f", {times.syncs} synchronizations"
            out.write(f"  {title:<9} {steady} ({times.backend}), first call {times.cold:.4g} ms{syncs}\n")


def _raised(run: RunInfo, verbose: bool) -> str:
    """What a run raises on inputs that were made to reach more: in brief the type alone."""
    if run.raised is None:
        return ""
    return f", which raises {run.raised}" if verbose else f" ({run.raised.partition(':')[0].partition(' ')[0]})"


def _batches(title: str, batches: Sequence[Batch], out: Page) -> None:
    """Graphs over a stream of batches; what the batches differ in is said once."""
    changes = ", ".join(dict.fromkeys(change for batch in batches for change in batch.changes))
    compiled = " ".join(str(batch.compiled) for batch in batches)
    executed = " ".join(str(batch.executed) for batch in batches)
    steady = batches[-1].compiled == batches[-min(2, len(batches))].compiled
    out.write(f"  {title:<9} compiled {compiled}; executed {executed}  [other {changes}]\n", _colour(steady))
    for number, batch in enumerate(batches):
        if batch.raised is not None:
            out.write(f"            batch {number} raises {batch.raised}\n", _colour(False))


def _recompile(item: Recompile, out: Page) -> None:
    times = f" {item.times} times" if item.times > 1 else ""
    took = f" ({item.seconds:.2g} s)" if item.seconds >= 0.01 else ""
    limit = ", up to the limit: it runs eagerly from then on" if item.limit else ""
    where = line(item.path, item.line)
    out.write(f"  {where}: {item.function} compiled again{times}{took}{limit}: {item.reason}\n")


def _varied(target: TargetReport, out: Page) -> None:
    """What calls with one thing changed were compiled anew for."""
    for one in target.varied:
        if one.recompile is not None:
            out.write(
                f"  varied    {one.change}: would be compiled again: {one.recompile.reason or 'a guard failed'}\n"
            )
    same = [one.change for one in target.varied if one.recompile is None and one.raised is None]
    if same:
        out.write(f"  varied    {', '.join(same)}: the same graph\n")
    refused = [one.change for one in target.varied if one.raised is not None]
    if refused:
        out.write(f"  varied    {', '.join(refused)}: not counted, the function raises\n")


def _unsafe(mending: Mending | None) -> str:
    """What could be mended besides."""
    if mending is None or not mending.unsafe:
        return ""
    return f"; {mending.unsafe}{' more' if mending.made else ' can be mended'} with --unsafe-fixes"


def _judged(findings: Sequence[Judged], path: str, out: Page) -> None:
    """What became of the analysis' findings, in a line for each that Dynamo did not confirm."""
    confirmed = sum(item.state == "confirmed" for item in findings)
    if findings:
        foreseen = sum(item.state != "only TorchDynamo" for item in findings)
        out.write(f"graphmend check: {confirmed} of {foreseen} findings confirmed\n")
    alike: dict[tuple[str, str, str], list[Judged]] = {}
    for item in findings:
        if item.state in ("not seen", "runs eagerly", "only TorchDynamo"):
            finding = item.finding
            where = "" if item.state == "runs eagerly" and not out.verbose else place(finding.path, finding.span)
            alike.setdefault((item.state, item.reason, where), []).append(item)
    for (state, reason, where), items in alike.items():
        if where:
            for item in items:
                out.write(f"  {where}: {item.finding.code} {state}: {reason}\n")
        else:
            out.write(f"  {state}: {reason}\n")
            out.write(f"    {_codes((item.finding for item in items), path)}\n")
    missed = [item.finding for item in findings if item.state == "not reached"]
    if missed:
        out.write(f"  not reached: {_codes(missed, path)}\n")
    other = dict.fromkeys(i.finding.function for i in findings if i.state == "not reached" and i.reason == NOT_CALLED)
    named = [f"{relative(path)}:{name}" for name in other if name.count(".") <= 1]  # no function within another one
    if named:
        more = "" if len(named) <= FEW or out.verbose else f"  # and {len(named) - FEW} more"
        out.write_whole(f"    to run them: graphmend verify {shlex.join(named if not more else named[:FEW])}{more}\n")


def _codes(findings: Iterable[Finding], path: str) -> str:
    """`GM101 in line 3`, or in a line of another file than the one that was checked."""
    own = os.path.realpath(path)

    def where(finding: Finding) -> str:
        number = finding.span.line
        return (row if os.path.realpath(finding.path) == own else line)(finding.path, number)

    return ", ".join(f"{finding.code} in {where(finding)}" for finding in findings)


def _colour(good: bool) -> str:
    return "green" if good else "red"


def _result(target: TargetReport) -> str:
    places = len(target.breaks)
    graphs = f"{target.graphs} graph{'s' * (target.graphs != 1)}"
    ops = f" of {', '.join(map(str, target.ops))} operations" if target.ops else ""
    known = f" besides {target.known} known" if target.known else ""
    again = compilations(target)
    if not places:
        return f"no graph break{known}: {graphs}{ops}{again}"
    return f"breaks in {places} place{'s' * (places != 1)}{known}: {graphs}{ops}{again}"


def _break(item: Break, out: Page) -> None:
    name = f"{item.gb_id} {item.gb_type}" if item.gb_id else item.gb_type
    times = f" ({item.count} times)" if item.count > 1 else ""
    again = out.is_told(item) and not out.verbose
    out.write_around(f"  {place(item.path, item.span)}: ", name, f": {EFFECTS[item.kind]}{times}{', as above' * again}")
    if again:
        return
    source = item.source.rstrip()
    if source:
        text = source.lstrip()
        indent = len(source) - len(text)
        end = item.span.end_column if item.span.end_line == item.span.line else len(source)
        out.write(f"      {text}\n")
        out.write(f"      {' ' * (item.span.column - indent)}{'^' * max(end - item.span.column, 1)}\n", "red")
    out.write(f"      {item.reason}\n")
    out.hints(item.hints)
    frames = [f"{line(frame.path, frame.span.line)} in {frame.function}" for frame in item.stack[:-1]]
    for text in frames if out.verbose or not frames else [", from ".join(reversed(frames))]:
        out.write(f"      from {text}\n")


def _comparison(comparison: Comparison, named: Sequence[str], out: Page) -> None:
    most = LINES if out.verbose else FEW
    judged, runs = judge(comparison, named), f"{comparison.runs} run{'s' * (comparison.runs != 1)}"
    if not judged.named and not judged.unnamed:
        what = f"values, {comparison.gradients} gradients, state, printed text"
        out.write(f"  compared  equal in {runs}: {what}\n", _colour(True))
    elif judged.passes:
        kinds = ", ".join(dict.fromkeys(item.kind for item in judged.named))
        out.write(f"  compared  equal in {runs} but for what the mend names: {kinds}\n", _colour(True))
    for title, items in (("named", judged.named), ("differs", judged.unnamed)):
        for item in items[:most]:
            if item.kind != "output-text" or "compiled" not in item.where or not comparison.silenced:
                out.write(f"  {title:<9} {item.kind}: {item.line}\n", _colour(title == "named"))
        if len(items) > most:
            out.write(f"  {title:<9} {len(items) - most} more\n", _colour(title == "named"))
    for text in comparison.silenced:
        out.write(f"  silenced  {text}\n", _colour(False))
    for text in comparison.remarks[:most]:
        out.write(f"  note      {text}\n")


def write_watched(watched: Watched, to: TextIO, *, verbose: bool = False) -> None:
    out = Page(to, verbose=verbose)
    if watched.command:
        graphs = f"{watched.graphs} graph{'s' * (watched.graphs != 1)}"
        out.write(f"{graphs} in {watched.processes} process{'es' * (watched.processes != 1)}\n")
    if watched.known:
        out.write(f"{watched.known} known break{'s' * (watched.known != 1)} not shown\n")
    for item in _ordered(watched.breaks):
        _break(item, out)
    for recompile in watched.recompiles:
        _recompile(recompile, out)


def _ordered(breaks: Iterable[Break]) -> list[Break]:
    """What happens most often first."""
    return sorted(breaks, key=lambda item: (-item.count, item.path, item.span))
