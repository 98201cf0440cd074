"""Places in files as people read them: in a notebook by cell."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from graphmend.analysis.syntax.span import Span
from graphmend.cli.paths import relative
from graphmend.workspace import files
from graphmend.workspace.notebooks import reading


def place(path: str, span: Span) -> str:
    """Path, row and column."""
    cell, span = _in_cell(path, span)
    return f"{relative(path)}:{cell}{span.line}:{span.column + 1}"


def line(path: str, number: int) -> str:
    """Path and row."""
    cell, span = _in_cell(path, Span(number, 0, number, 0))
    return f"{relative(path)}:{cell}{span.line}"


def row(path: str, number: int) -> str:
    """`line 3` of a file that is spoken of, `cell 2, line 3` of a notebook."""
    cell, span = _in_cell(path, Span(number, 0, number, 0))
    return f"{cell[:-1]}, line {span.line}" if cell else f"line {number}"


def _in_cell(path: str, span: Span) -> tuple[str, Span]:
    notebook = _notebook(path) if path.endswith(reading.SUFFIX) else None
    if notebook is None or not notebook.cells:
        return "", span
    number, inside = notebook.place(span)
    return f"cell {number}:", inside


@lru_cache(maxsize=8)
def _notebook(path: str) -> reading.NotebookText | None:
    try:
        text = reading.read(Path(path))
    except files.FileProblem:
        return None
    return text if isinstance(text, reading.NotebookText) else None
