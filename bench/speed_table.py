"""The table and the plot of bench/speed.py, from the repeats that it keeps."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from html import escape
from typing import Any, NamedTuple

#: the authors' figures, on CUDA: the least and the most that cold time fell and that throughput rose, in %
AUTHORS_COLD, AUTHORS_THROUGHPUT = (30, 75), (5, 8)
_COLUMNS = (
    "graphs",
    "cold, s",
    "cold",
    "all, s",
    "call, ms",
    "throughput",
    "memory, MB",
    "outputs",
    "repeats",
    "clock: cold, call",
)


class Row(NamedTuple):
    """What the repeats of a row say."""

    graphs: tuple[int, int]
    """In the first call."""
    graphs_in_all: tuple[int, int]
    cold: tuple[float, float]
    until_steady: tuple[float, float]
    """Cold time and that of the calls after it that compile again, or may."""
    call: tuple[float, float]
    gain: tuple[float, float, float]
    """Plain time by mended time of a turn: the lower quartile, the median, the upper quartile."""
    memory: tuple[float, float]
    outputs: str
    repeats: int
    clock: tuple[tuple[float, float], tuple[float, float]]
    """Cold time and that of a call, on the clock."""

    @property
    def colder(self) -> float:
        """By how many percent cold time falls."""
        return 100 * (1 - self.cold[1] / self.cold[0])


def summed(repeats: list[dict[str, Any]], on_clock: bool) -> Row:
    """Medians over repeats, and over all turns of all repeats."""

    def both(read: Callable[[dict[str, Any]], float]) -> tuple[float, float]:
        plain, mended = (statistics.median(read(repeat[arm]) for repeat in repeats) for arm in ("plain", "mended"))
        return plain, mended

    def cold(clock: bool) -> tuple[float, float]:
        return both(lambda arm: arm["cold"][clock])

    def turns(clock: bool) -> list[tuple[float, float]]:
        return [(plain[clock], mended[clock]) for repeat in repeats for plain, mended in repeat["turns"]]

    def call(clock: bool) -> tuple[float, float]:
        plain, mended = (statistics.median(column) for column in zip(*turns(clock), strict=True))
        return plain, mended

    low, middle, high = statistics.quantiles((plain / mended for plain, mended in turns(on_clock)), n=4)

    def graphs(of: str) -> tuple[int, int]:
        plain, mended = both(lambda arm: arm[of])
        return int(plain), int(mended)

    return Row(
        graphs=graphs("graphs"),
        graphs_in_all=graphs("graphs_in_all"),
        cold=cold(on_clock),
        until_steady=both(lambda arm: arm["cold"][on_clock] + arm["warm"][on_clock]),
        call=call(on_clock),
        gain=(low, middle, high),
        memory=both(lambda arm: arm["memory"]),
        outputs=" / ".join(sorted({repeat["equal"] for repeat in repeats})),
        repeats=len(repeats),
        clock=(cold(True), call(True)),
    )


def rows(found: dict[str, Any]) -> dict[str, Row | str]:
    """What was measured, or why nothing was."""
    on_clock = not found["made"]["machine"].endswith("one thread")
    made: dict[str, Row | str] = {}
    for name, entry in found["rows"].items():
        if entry["repeats"]:
            made[name] = summed(entry["repeats"], on_clock)
        elif "failed" in entry:
            made[name] = entry["failed"]
    return made


def table(found: dict[str, Any], shared: dict[str, list[str]]) -> str:
    """`shared` are the rows that a row stands for as well, because they have its code."""
    made = found["made"]
    beside = f", {made['jobs']} rows compiling at once" if "jobs" in made else ""
    lines = [
        f"{made['machine']}{beside}; {made['versions']}; {made['date']}; {made['size']} sizes, random weights; "
        f"{made['mends']}",
        "",
        f"| row | {' | '.join(_COLUMNS)} |",
        f"|---|{'---|' * len(_COLUMNS)}",
    ]
    measured = rows(found)
    for name, row in measured.items():
        cells = list(_cells(row)) if isinstance(row, Row) else [_as_cell(row), *[""] * (len(_COLUMNS) - 1)]
        lines.append(f"| {name} | {' | '.join(cell for _, cell in zip(_COLUMNS, cells, strict=True))} |")
    others = [f"{name} for {', '.join(rows)}" for name, rows in shared.items() if rows and name in measured]
    lines += ["", f"Rows that stand for others, which share their code: {'; '.join(others)}."] if others else []
    missing = [name for name in shared if name not in measured]
    lines += ["", f"Not measured yet: {', '.join(missing)}."] if missing else []
    whole = [row for row in measured.values() if isinstance(row, Row)]
    less = [row for row in whole if row.graphs[1] < row.graphs[0]]
    if less:
        cold, gain = ([row.colder for row in less], [100 * (row.gain[1] - 1) for row in less])
        lines += [
            "",
            f"{len(less)} of {len(whole)} rows that ran in both arms have fewer graphs mended. "
            f"Of these, cold time changes by "
            f"{-statistics.median(cold):+.0f} % in the median ({-max(cold):+.0f} to {-min(cold):+.0f} %; the authors': "
            f"-{AUTHORS_COLD[1]} to -{AUTHORS_COLD[0]} %), and throughput changes by {statistics.median(gain):+.1f} % "
            f"({min(gain):+.1f} to {max(gain):+.1f} %; the authors': "
            f"{AUTHORS_THROUGHPUT[0]:+} to {AUTHORS_THROUGHPUT[1]:+} %).",
        ]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> Iterator[str]:
    low, middle, high = (100 * (each - 1) for each in row.gain)
    more = f" ({row.graphs_in_all[0]} → {row.graphs_in_all[1]})" if row.graphs_in_all != row.graphs else ""
    yield f"{row.graphs[0]} → {row.graphs[1]}{more}"
    yield f"{row.cold[0]:.1f} → {row.cold[1]:.1f}"
    yield f"{-row.colder:+.0f} %"
    yield f"{row.until_steady[0]:.1f} → {row.until_steady[1]:.1f}"
    yield f"{1000 * row.call[0]:.2f} → {1000 * row.call[1]:.2f}"
    yield f"{middle:+.1f} % ({low:+.1f} to {high:+.1f})"
    yield f"{row.memory[0]:.0f} → {row.memory[1]:.0f}"
    yield row.outputs
    yield str(row.repeats)
    (plain, mended), (called, after) = row.clock
    yield f"{plain:.0f} → {mended:.0f} s, {1000 * called:.0f} → {1000 * after:.0f} ms"


def _as_cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


# The plot

_ROW, _NAMES, _PANEL, _GAP, _TOP = 22, 190, 300, 60, 58
_WIDTH = _NAMES + 2 * _PANEL + _GAP + 70
_STYLE = "text{font:12px system-ui,sans-serif;fill:#222}.soft{fill:#666}.axis{stroke:#bbb}.zero{stroke:#444}"
_BETTER, _WORSE, _BAND = "#2c7a4b", "#b3422e", "#dfe8f5"


class Panel(NamedTuple):
    """One scale, from left to right, and what stands on it."""

    title: str
    left: float
    low: float
    high: float

    def at(self, value: float) -> float:
        inside = min(max(value, self.low), self.high)
        return self.left + _PANEL * (inside - self.low) / (self.high - self.low)


def plot(found: dict[str, Any]) -> str:
    """Cold time and throughput of each row, as changes from plain to mended, over the authors' figures."""
    drawn = {name: row for name, row in rows(found).items() if isinstance(row, Row)}
    height = _TOP + _ROW * len(drawn) + 30
    colder = [row.colder for row in drawn.values()]
    gains = [100 * (each - 1) for row in drawn.values() for each in row.gain]
    panels = (
        Panel("cold time saved, %", _NAMES, min([0, *colder]) - 5, 100),
        Panel("throughput gained, %", _NAMES + _PANEL + _GAP, min([0, *gains]) - 1, max([10, *gains]) + 1),
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
        "<title>What mending buys: cold time and throughput, mended against plain</title>",
        f"<style>{_STYLE}</style>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for panel, band in zip(panels, (AUTHORS_COLD, AUTHORS_THROUGHPUT), strict=True):
        lines += _axis(panel, band, height)
    for number, (name, row) in enumerate(drawn.items()):
        top = _TOP + number * _ROW
        lines.append(f'<text x="{_NAMES - 8}" y="{top + 15}" text-anchor="end">{escape(name)}</text>')
        lines += _bar(panels[0], row.colder, top, f"{row.colder:.0f}")
        low, middle, high = (100 * (each - 1) for each in row.gain)
        lines += _bar(panels[1], middle, top, f"{middle:+.1f}", (low, high))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _axis(panel: Panel, band: tuple[int, int], height: int) -> Iterator[str]:
    bottom, left, right = height - 24, panel.at(band[0]), panel.at(band[1])
    yield f'<text x="{panel.left}" y="20" font-weight="600">{escape(panel.title)}</text>'
    yield (
        f'<rect x="{left:.1f}" y="{_TOP - 6}" width="{right - left:.1f}" height="{bottom - _TOP + 6}" fill="{_BAND}"/>'
    )
    middle = (left + right) / 2
    yield f'<text class="soft" x="{middle:.1f}" y="{_TOP - 12}" text-anchor="middle">the authors, on CUDA</text>'
    zero = panel.at(0)
    yield f'<line class="zero" x1="{zero:.1f}" x2="{zero:.1f}" y1="{_TOP - 6}" y2="{bottom}"/>'
    step = 25 if panel.high > 50 else 5
    for value in range(-step * int(-panel.low // step), round(panel.high) + 1, step):
        yield f'<text class="soft" x="{panel.at(value):.1f}" y="{height - 8}" text-anchor="middle">{value}</text>'


def _bar(panel: Panel, value: float, top: int, told: str, spread: tuple[float, float] | None = None) -> Iterator[str]:
    start, end = sorted((panel.at(0), panel.at(value)))
    fill = _BETTER if value >= 0 else _WORSE
    yield f'<rect x="{start:.1f}" y="{top + 5}" width="{max(end - start, 1):.1f}" height="12" fill="{fill}"/>'
    last = max(end, panel.at(0))
    if spread:
        low, high = (panel.at(each) for each in spread)
        last = max(last, high)
        yield f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{top + 11}" y2="{top + 11}" stroke="#111"/>'
    yield f'<text class="soft" x="{last + 5:.1f}" y="{top + 15}">{told}</text>'
