"""`graphmend verify --output-format html`: one page without scripts or network; light or dark as the reader's system
is.

Each target's graphs are a strip, cut at each break; before beside after; times as bars.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, TextIO

from graphmend.cli.output.page import page
from graphmend.cli.output.verify.full import EFFECTS
from graphmend.cli.paths import relative
from graphmend.dynamo.verdict import judge

if TYPE_CHECKING:
    from graphmend.dynamo.comparison import Comparison
    from graphmend.dynamo.report import Batch, Break, Recompile, Report, TargetReport, Times
    from graphmend.dynamo.watched_command import Watched


def write(reports: Sequence[Report], out: TextIO) -> None:
    title = f"graphmend verify: {', '.join(dict.fromkeys(relative(report.path) for report in reports))}"
    page(title, "TorchDynamo's graphs", (line for report in reports for line in _report(report)), out)


def write_watched(watched: Watched, out: TextIO) -> None:
    """What was seen in a command, or what a log tells."""
    page(f"graphmend verify: {' '.join(watched.command)}", "TorchDynamo's graphs", _watched(watched), out)


def _watched(watched: Watched) -> Iterator[str]:
    yield "<section>"
    if watched.command:
        processes = f"{watched.processes} process{'es' * (watched.processes != 1)}"
        yield f"<pre>{escape(' '.join(watched.command))}</pre>"
        yield f"<p class=soft>{watched.graphs} graph{'s' * (watched.graphs != 1)} in {processes}</p>"
    if watched.problem is not None:
        yield f'<p class="bad">{escape(watched.problem)}</p>'
    if not watched.breaks:
        known = f" besides {watched.known} known" if watched.known else ""
        yield f'<p class="good">no graph break{known}</p>'
    for item in sorted(watched.breaks, key=lambda b: (-b.count, b.path, b.span)):
        yield from _break(item)
    yield from _recompiles(watched.recompiles)
    yield "</section>"


def _report(report: Report) -> Iterator[str]:
    if report.problem is not None:
        yield f'<section><h2>{escape(relative(report.path))}</h2><p class="bad">{escape(report.problem)}</p></section>'
    for target in report.targets:
        after = None if report.after is None else next((t for t in report.after.targets if t.name == target.name), None)
        yield "<section>"
        yield f"<h2>{escape(target.name)} <span class=soft>{escape(relative(report.path))}</span></h2>"
        yield from _target(target, report)
        if after is not None:
            yield "<h3>Mended</h3>"
            yield from _outcome(after)
            if after.comparison is not None:
                yield from _comparison(after.comparison, report.after.named if report.after is not None else ())
        yield from _batches("plain", target.batches)
        yield from _batches("mended", after.batches if after is not None else ())
        yield from _times(target.times, after.times if after is not None else None)
        yield "</section>"


def _batches(title: str, batches: Sequence[Batch]) -> Iterator[str]:
    if batches:
        yield f"<p>graphs over {len(batches)} batches, {title}</p><table>"
        for name, numbers in (("compiled", [b.compiled for b in batches]), ("executed", [b.executed for b in batches])):
            yield f"<tr><th>{name}</th>{''.join(f'<td>{number}</td>' for number in numbers)}</tr>"
        yield "</table>"


def _target(target: TargetReport, report: Report) -> Iterator[str]:
    if target.problem is None:
        said = filter(None, [report.note if target.device == "cpu" else "", report.remark])
        where = "; ".join([target.origin, target.device, f"torch {report.torch}", *said])
        yield f"<p class=soft>{escape(where)}</p>"
        yield f"<pre>{escape(target.inputs)}</pre>"
        others = [run.inputs + (f" (raises {run.raised})" if run.raised else "") for run in target.runs[1:]]
        if others:
            yield f"<p class=soft>also with {escape('; '.join(others))}</p>"
    yield from _outcome(target)


def _outcome(target: TargetReport) -> Iterator[str]:
    if target.problem is not None:
        yield f'<p class="bad">{escape(target.problem)}</p>'
        return
    places = len(target.breaks)
    graphs = f"{target.graphs} graph{'s' * (target.graphs != 1)}"
    known = f" besides {target.known} known" if target.known else ""
    if places:
        yield f'<p class="bad">breaks in {places} place{"s" * (places != 1)}{known}, {graphs}</p>'
    else:
        yield f'<p class="good">no graph break{known}, {graphs}</p>'
    yield from _strip(target)
    for note in target.notes:
        yield f"<p class=soft>{escape(note)}</p>"
    for number, item in enumerate(target.breaks, 1):
        yield from _break(item, number)
    yield from _recompiles(target.recompiles)


def _recompiles(recompiles: Sequence[Recompile]) -> Iterator[str]:
    if not recompiles:
        return
    yield "<ul>"
    for again in recompiles:
        place = f"{relative(again.path)}:{again.line}"
        what = f"{place}: {again.function} compiled again{f' {again.times} times' * (again.times > 1)}:"
        yield f"<li>{escape(what)} <code>{escape(again.reason)}</code></li>"
    yield "</ul>"


def _strip(target: TargetReport) -> Iterator[str]:
    """The graphs side by side, as wide as they have operations; the break that cuts them is named by its number."""
    if not target.ops:
        yield '<div class="strip"><div class="none">no graph: everything ran eagerly</div></div>'
        return
    cells = []
    for number, count in enumerate(target.ops, 1):
        title = f"graph {number}: {count} operations"
        cells.append(f'<div class="graph" style="flex: {max(count, 1)} 1 0" title="{title}">{count}</div>')
        if number < len(target.ops):
            cells.append(_cut(target, number - 1))
    yield '<div class="strip">' + "".join(cells) + "</div>"


def _cut(target: TargetReport, graph: int) -> str:
    item = target.cuts[graph] if graph < len(target.cuts) else None
    if item is None:
        return '<div class="cut"></div>'
    number = target.breaks.index(item) + 1 if item in target.breaks else ""  # a baseline takes known ones away
    title = f"{_place(item)}: {item.source.strip()}: {item.reason}"
    return f'<div class="cut" title="{escape(title)}">{number}</div>'


def _place(item: Break) -> str:
    return f"{relative(item.path)}:{item.span.line}:{item.span.column + 1}"


def _break(item: Break, number: int | None = None) -> Iterator[str]:
    name = f"{item.gb_id} {item.gb_type}" if item.gb_id else item.gb_type
    times = f", {item.count} times" if item.count > 1 else ""
    which = f"{number} " if number is not None else ""
    yield '<div class="break">'
    yield f"<div><b class=bad>{which}</b><code>{escape(_place(item))}</code> <b>{escape(name)}</b>:"
    yield f"{EFFECTS[item.kind]}{times}</div>"
    yield f"<pre>{_source(item)}</pre>"
    yield f"<div>{escape(item.reason)}</div>"
    if item.hints:
        yield f"<ul class=soft>{''.join(f'<li>{escape(hint)}</li>' for hint in item.hints)}</ul>"
    yield "</div>"


def _source(item: Break) -> str:
    """The line of the break, its span marked."""
    end = item.span.end_column if item.span.end_line == item.span.line else len(item.source)
    parts = item.source[: item.span.column].lstrip(), item.source[item.span.column : end], item.source[end:].rstrip()
    before, marked, behind = (escape(part) for part in parts)
    return f"{before}<mark>{marked}</mark>{behind}"


def _comparison(comparison: Comparison, named: Sequence[str]) -> Iterator[str]:
    judged = judge(comparison, named)
    if judged.passes:
        what = f"values, {comparison.gradients} gradients, state and printed text"
        but = " but for what the mend names" if judged.named else ""
        yield f'<p class="good">equal in {comparison.runs} runs{but}: {what}</p>'
    for style, items in (("soft", judged.named), ("bad", judged.unnamed)):
        lines = [f"{item.kind}: {item.line}" for item in items]
        if lines:
            yield f'<ul class="{style}">{"".join(f"<li>{escape(line)}</li>" for line in lines)}</ul>'
    if comparison.remarks:
        yield f"<ul class=soft>{''.join(f'<li>{escape(line)}</li>' for line in comparison.remarks)}</ul>"


def _times(before: Times | None, after: Times | None) -> Iterator[str]:
    bars = []
    for title, times in (("", before), ("mended, ", after)):
        if times is not None:
            bars.append((f"{title}eager", times.eager, "eager"))
            bars.append((f"{title}{times.backend}", times.compiled, "compiled"))
    longest = max((value for _, value, _ in bars), default=0.0)
    for title, value, kind in bars:
        width = 100 * value / longest if longest else 0
        yield f'<div class="bar {kind}"><span>{escape(title)}</span><span style="width: {width:.1f}%"></span>'
        yield f"<span>{value:.3g} ms</span></div>"
    cold = [f"{t.cold:.4g} ms" for t in (before, after) if t is not None]
    if cold:
        yield f"<p class=soft>first call, compilation included: {', mended '.join(cold)}</p>"
