"""The report of a sweep as one page: how many models are one graph, what breaks the others, and each model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, TextIO

from graphmend.cli.output.page import page
from graphmend.cli.output.sweep import plot
from graphmend.cli.output.sweep.causes import Cause, causes

Line = Mapping[str, Any]

#: rows of a table of models: what needs looking at first
_ORDER = ("differs", "worse", "breaks", "fewer", "failed", "mended", "one-graph")
_WORDS = {
    "one-graph": "one graph",
    "mended": "one graph when mended",
    "fewer": "breaks less often when mended",
    "breaks": "breaks",
    "worse": "breaks more often when mended",
    "differs": "answers otherwise when mended",
    "failed": "not run",
}
_REASONS = {
    "timeout": "took too long",
    "memory": "needs more memory",
    "gpu": "needs a GPU",
    "raises": "raises",
    "import": "cannot be imported",
    "inputs": "no inputs fit",
    "died": "its process ended",
    "lost": "the process or machine that ran it ended",
    "nothing": "has nothing to run",
    "internal": "a failure of GraphMend itself",
}
_PLACES = 20


def write(lines: Sequence[Line], out: TextIO) -> None:
    page("graphmend sweep", "Graphs of many models", _body(lines), out)


def _body(lines: Sequence[Line]) -> Iterator[str]:
    mended = any(line["options"]["mended"] for line in lines)
    found = causes(lines)
    yield from _overview(lines, mended)
    yield from _causes(found, mended)
    yield from _failures([line for line in lines if line["outcome"] == "failed"])
    yield from _models(lines, mended)


def _overview(lines: Sequence[Line], mended: bool) -> Iterator[str]:
    models = [model for line in lines for model in line["models"]]
    failed = sum(model["outcome"] == "failed" for model in models)
    ran = [model for model in models if model["outcome"] != "failed"]
    one = sum(not model["breaks"] for model in ran)
    rows = [("plain", _parts(one, len(ran) - one, 0, failed))]
    if mended:
        wrong = sum(model["outcome"] in ("worse", "differs") for model in ran)
        now = sum(model["outcome"] in ("one-graph", "mended") for model in ran)
        rows.append(("mended", _parts(now, len(ran) - now - wrong, wrong, failed)))
    yield "<section>"
    yield f"<h2>{len(models)} model{'s' * (len(models) != 1)}</h2>"
    yield from plot.shares(rows)
    for told in dict.fromkeys(_told(line) for line in lines if line["report"] and line["report"]["torch"]):
        yield f"<p class=soft>{escape(told)}</p>"
    yield "</section>"


def _parts(one: int, some: int, wrong: int, failed: int) -> list[tuple[str, str, int]]:
    parts = [("one", "one graph", one), ("some", "break", some), ("some", "worse or different", wrong)]
    return [part for part in [*parts, ("none", "not run", failed)] if part[2]]


def _told(line: Line) -> str:
    """With what a line was made."""
    options = line["options"]
    mends = "no mends" if not options["mended"] else "all mends" if options["unsafe"] else "safe mends"
    batches = f", {options['batches']} batches" if options["batches"] else ""
    return f"graphmend {line['graphmend']}, torch {line['report']['torch']}, {mends}{batches}"


# what breaks


def _causes(found: Sequence[Cause], mended: bool) -> Iterator[str]:
    yield "<section><h2>What breaks the graphs</h2>"
    if not found:
        yield '<p class="good">no graph break</p></section>'
        return
    colours = ": grey as it is, blue mended" if mended else ""
    yield f"<p class=soft>Each place counts once for every model that breaks there{colours}.</p>"
    yield from plot.frequencies(found, mended)
    for cause in found:
        yield from _cause(cause, mended)
    yield "</section>"


def _cause(cause: Cause, mended: bool) -> Iterator[str]:
    count = f"{cause.plain} → {cause.mended}" if mended else str(cause.plain)
    models = f"{len(cause.models)} model{'s' * (len(cause.models) != 1)}"
    yield f"<details><summary><b>{escape(cause.name)}</b> <span class=soft>{count}, in {models}</span></summary><table>"
    yield from _row("th", "where", "plain", "mended") if mended else _row("th", "where", "models")
    places = cause.most()
    for place, (before, after) in places[:_PLACES]:
        where = f"<code>{escape(place.filename)}:{place.row}</code><pre>{escape(place.source)}</pre>"
        yield from _row("td", where, *(map(str, (before, after)) if mended else (str(before),)))
    yield "</table>"
    if len(places) > _PLACES:
        yield f"<p class=soft>and {len(places) - _PLACES} more places</p>"
    yield "</details>"


# what was not run


def _failures(lines: Sequence[Line]) -> Iterator[str]:
    if not lines:
        return
    by_reason: dict[str, list[Line]] = {}
    for line in lines:
        by_reason.setdefault(line["reason"], []).append(line)
    yield "<section><h2>Not run</h2>"
    for reason, several in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        yield f"<details open><summary><b>{_REASONS.get(reason, reason)}</b> <span class=soft>{len(several)}</span>"
        yield "</summary><table>"
        for line in several:
            yield from _row(
                "td", f"<code>{escape(line['target'])}</code>", escape(line["problem"] or ""), numbers=False
            )
        yield "</table></details>"
    yield "</section>"


# each model


def _models(lines: Sequence[Line], mended: bool) -> Iterator[str]:
    rows = [(line, model) for line in lines for model in line["models"] if model["outcome"] != "failed"]
    rows.sort(key=lambda row: (_ORDER.index(row[1]["outcome"]), -row[1]["breaks"], row[0]["target"]))
    yield "<section><h2>Each model</h2><table>"
    yield from _row("th", "model", "breaks", "graphs", "compilations", "seconds", first="")
    for line, model in rows:
        counts = [
            _change(model[name], model[f"{name}_mended"] if mended else None)
            for name in ("breaks", "graphs", "compilations")
        ]
        name = line["target"] if line["target"].endswith(f":{model['name']}") else f"{line['target']}:{model['name']}"
        good = model["outcome"] in ("one-graph", "mended")
        words = f'<span class="{"good" if good else "bad"}">{_WORDS[model["outcome"]]}</span>'
        problem = f"<div class=soft>{escape(model['problem'])}</div>" if model["problem"] else ""
        took = line["run"]["seconds"]
        yield from _row(
            "td", f"<code>{escape(name)}</code>{problem}", *counts, f"{took:.1f}" if took else "", first=words
        )
    yield "</table></section>"


def _change(before: int, after: int | None) -> str:
    return str(before) if after is None or after == before else f"{before} → {after}"


def _row(tag: str, *cells: str, first: str | None = None, numbers: bool = True) -> Iterator[str]:
    """One row; all cells but the first hold numbers. `first` stands before them."""
    yield "<tr>"
    if first is not None:
        yield f"<{tag}>{first}</{tag}>"
    for number, cell in enumerate(cells):
        yield f"<{tag}{' class=number' if number and numbers else ''}>{cell}</{tag}>"
    yield "</tr>"
