"""`graphmend verify --output-format html`: one page without scripts or network; light or dark as the reader's system
is.

Each target's graphs are a strip, cut at each break; before beside after; times as bars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, TextIO

from graphmend.cli.output.verify.full import EFFECTS
from graphmend.cli.paths import relative
from graphmend.dynamo.verdict import judge

if TYPE_CHECKING:
    from graphmend.dynamo.report import Batch, Break, Comparison, Recompile, Report, TargetReport, Times
    from graphmend.dynamo.watched_command import Watched

_STYLE = """
:root { color-scheme: light dark; --text: #1c2024; --soft: #60646c; --back: #ffffff; --card: #f6f7f9; --line: #d9dce1;
  --graph: #2f6feb; --cut: #d1342f; --good: #1a7f4b; --eager: #8a8f98; }
@media (prefers-color-scheme: dark) { :root { --text: #e8eaed; --soft: #a0a4ab; --back: #15171a; --card: #1e2125;
  --line: #353a41; --graph: #5b8ff9; --cut: #ff6b63; --good: #4cc38a; --eager: #767c86; } }
* { box-sizing: border-box; }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; background: var(--back); color: var(--text);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin: 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 1rem 1.2rem; margin:
1rem 0; } code, pre { font: 13px/1.45 ui-monospace, monospace; } pre { margin: .3rem 0; overflow-x: auto; }
.soft { color: var(--soft); } .good { color: var(--good); } .bad { color: var(--cut); }
.strip { display: flex; align-items: stretch; gap: 0; margin: .4rem 0 .8rem; height: 2rem; }
.graph { background: var(--graph); color: #fff; border-radius: 4px; min-width: 1.6rem; padding: 0 .3rem; text-align:
center;
  line-height: 2rem; font-size: 12px; overflow: hidden; }
.cut { flex: 0 0 1.3rem; margin: -.2rem .2rem; color: var(--cut); text-align: center; line-height: 2.4rem;
  font-size: 12px; font-weight: bold; border-left: 3px solid; }
.none { border: 1px dashed var(--line); flex: 1; text-align: center; line-height: 2rem; color: var(--soft); }
.break { border-left: 3px solid var(--cut); padding: .1rem 0 .1rem .8rem; margin: .7rem 0; }
mark { background: none; color: inherit; text-decoration: underline wavy var(--cut); text-underline-offset: 3px; }
.bar { display: grid; grid-template-columns: 11rem 1fr 6rem; gap: .6rem; align-items: center; margin: .2rem 0; }
.bar span:nth-child(2) { height: .9rem; border-radius: 3px; background: var(--graph); min-width: 2px; }
.bar.eager span:nth-child(2) { background: var(--eager); }
ul { margin: .3rem 0; padding-left: 1.2rem; }
"""


def write(reports: Sequence[Report], out: TextIO) -> None:
    title = f"graphmend verify: {', '.join(dict.fromkeys(relative(report.path) for report in reports))}"
    _page(title, (line for report in reports for line in _report(report)), out)


def write_watched(watched: Watched, out: TextIO) -> None:
    """What was seen in a command, or what a log tells."""
    _page(f"graphmend verify: {' '.join(watched.command)}", _watched(watched), out)


def _page(title: str, lines: Iterable[str], out: TextIO) -> None:
    out.write(f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n')
    out.write('<meta name="viewport" content="width=device-width, initial-scale=1">\n')
    out.write(f"<style>{_STYLE}</style></head>\n<body><h1>TorchDynamo's graphs</h1>\n")
    out.writelines(f"{line}\n" for line in lines)
    out.write("</body></html>\n")


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
        note = f"; {report.note}" if report.note and target.device == "cpu" else ""
        where = f"{target.origin}; {target.device}; torch {report.torch}{note}"
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
