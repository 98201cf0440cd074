"""Plots of a sweep as SVG that stands in the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from graphmend.cli.output.sweep.causes import Cause

_WIDTH = 920
_NAMES = 330
_ROW = 30

#: causes that are drawn; all are in the table
MOST = 12


def shares(rows: Sequence[tuple[str, Sequence[tuple[str, str, int]]]]) -> Iterator[str]:
    """One bar a row, as long as all others: a title, and the style, name and number of each of its parts."""
    height = _ROW * len(rows)
    yield f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="models by what becomes of them">'
    left = 90
    for number, (title, parts) in enumerate(rows):
        top, at = number * _ROW, float(left)
        total = sum(count for _, _, count in parts) or 1
        yield f'<text x="0" y="{top + 19}">{escape(title)}</text>'
        for style, name, count in parts:
            width = (_WIDTH - left) * count / total
            told = f"{count} {name}"
            yield f'<rect class="{style}" x="{at:.1f}" y="{top + 3}" width="{width:.1f}" height="{_ROW - 6}">'
            yield f"<title>{escape(told)}</title></rect>"
            if width > 8 * len(told):
                yield f'<text class="on" x="{at + 8:.1f}" y="{top + 19}">{escape(told)}</text>'
            at += width
    yield "</svg>"


def frequencies(causes: Sequence[Cause], mended: bool) -> Iterator[str]:
    """Two bars a cause: how often it breaks the graph plain, and mended."""
    drawn = causes[:MOST]
    longest = max((max(cause.plain, cause.mended) for cause in drawn), default=0) or 1
    yield f'<svg viewBox="0 0 {_WIDTH} {_ROW * len(drawn)}" role="img" aria-label="causes of breaks">'
    for number, cause in enumerate(drawn):
        top = number * _ROW
        yield f'<text x="0" y="{top + 19}">{escape(_cut(cause.name))}</text>'
        for style, count, down in (("plain", cause.plain, 3), ("mended", cause.mended, 15)):
            if style == "mended" and not mended:
                continue
            width = (_WIDTH - _NAMES - 60) * count / longest
            yield f'<rect class="{style}" x="{_NAMES}" y="{top + down}" width="{width:.1f}" height="10"/>'
        told = f"{cause.plain} → {cause.mended}" if mended else str(cause.plain)
        most = (_WIDTH - _NAMES - 60) * max(cause.plain, cause.mended if mended else 0) / longest
        yield f'<text class="soft" x="{_NAMES + most + 8:.1f}" y="{top + 19}">{told}</text>'
    yield "</svg>"


def _cut(name: str) -> str:
    return name if len(name) <= 42 else name[:41] + "…"
