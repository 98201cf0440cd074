"""Python from disk, of a file or of a notebook, whose text is that of the module that its cells make.

A mended text goes back into the cells that it changes; every other byte of the notebook stays, outputs included.
"""

from __future__ import annotations

import difflib
import json
import os
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from graphmend.analysis.syntax.notebook_cells import python_lines
from graphmend.analysis.syntax.span import Span
from graphmend.workspace import files
from graphmend.workspace.files import FileProblem, FileText
from graphmend.workspace.notebooks import json_spans

SUFFIX = ".ipynb"
#: bytes; outputs count, and may hold pictures
LONGEST = 500_000_000


class Cell(NamedTuple):
    """One code cell."""

    number: int
    """Its number among all cells of the notebook, from 1."""
    start: int
    """How many lines of the module stand before it."""
    lines: tuple[str, ...]
    """Its lines as they stand in the notebook."""
    source: tuple[int, int]
    """Where its source stands in the JSON text."""


@dataclass(frozen=True, slots=True)
class NotebookText(FileText):
    """A notebook: `text` is the module."""

    json: str = ""
    cells: tuple[Cell, ...] = ()
    notes: tuple[str, ...] = ()
    """What is not looked at, and why."""

    def encode(self, text: str) -> bytes:
        """The notebook with the changes that made `text` of the module."""
        result = self.json
        for cell, lines in reversed(self.changed(text)):
            begin, end = cell.source
            result = result[:begin] + self._as_json("\n".join(lines), result[begin:end]) + result[end:]
        return result.encode("utf-8")

    def changed(self, text: str) -> list[tuple[Cell, list[str]]]:
        """The cells that change with the module, each with its new lines. Raises `FileProblem`."""
        old, new = _module(self.cells).split("\n"), text.split("\n")
        found: dict[int, list[str]] = {}
        moved: dict[int, int] = {}
        for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if kind == "equal":
                continue
            index = self._at(max(a - 1, 0) if a == b else a)
            cell = self.cells[index]
            begin, end = a - cell.start, b - cell.start
            if end > len(cell.lines) or tuple(old[a:b]) != cell.lines[begin:end]:
                raise FileProblem("the mend reaches over the border of a cell, or into what is IPython's")
            lines, shift = found.setdefault(index, list(cell.lines)), moved.get(index, 0)
            lines[begin + shift : end + shift] = new[c:d]
            moved[index] = shift + (d - c) - (b - a)
        return [(self.cells[index], found[index]) for index in sorted(found)]

    def place(self, span: Span) -> tuple[int, Span]:
        """The number of the cell that a place of the module is in, and the place there."""
        cell = self.cells[self._at(span.line - 1)]
        return cell.number, span._replace(line=span.line - cell.start, end_line=span.end_line - cell.start)

    def _at(self, line: int) -> int:
        """The index of the cell with a line (from 0) of the module."""
        return max(bisect_right([cell.start for cell in self.cells], line) - 1, 0)

    def _as_json(self, source: str, model: str) -> str:
        ascii_only = self.json.isascii() and "\\u" in self.json
        if model.startswith('"'):
            return json.dumps(source, ensure_ascii=ascii_only)
        return json_spans.string_list(source.splitlines(keepends=True), model, ascii_only=ascii_only)


def read(path: Path | str, longest: float = files.LONGEST) -> FileText:
    """The text of a Python file, or of a notebook's module."""
    if not str(path).endswith(SUFFIX):
        return files.read(path, longest)
    try:
        if os.path.isfile(path) and os.path.getsize(path) > LONGEST:
            raise files.TooLong(f"has more than {LONGEST} bytes: it is not analysed")
        data = Path(path).read_bytes()
    except OSError as error:
        raise FileProblem(files.reason(error)) from None
    return decode(data)


def decoded(data: bytes, path: Path) -> FileText:
    """The text of what would stand at a path."""
    return decode(data) if path.suffix == SUFFIX else files.decode(data)


def decode(data: bytes) -> NotebookText:
    """A notebook's module. A notebook in another language has no cells."""
    try:
        text = data.decode("utf-8")
        document = json.loads(text)
    except UnicodeDecodeError:
        raise FileProblem("is not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise FileProblem(f"is no notebook: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        raise FileProblem("is no notebook of version 4: it has no list of cells")
    cells, notes = [], []
    start = 0
    if _language(document) == "python":
        spans = json_spans.elements(text, json_spans.members(text, json_spans.start_of(text))["cells"][0])
        for number, (cell, span) in enumerate(zip(document["cells"], spans, strict=True), 1):
            if not isinstance(cell, dict) or cell.get("cell_type") != "code":
                continue
            source = cell.get("source", "")
            whole = "".join(map(str, source)) if isinstance(source, list) else str(source)
            if "source" not in cell or not whole:
                continue
            lines = tuple(whole.split("\n"))
            if python_lines(lines) is None:
                notes.append(f"cell {number} does not parse, and is left out")
            cells.append(Cell(number, start, lines, json_spans.members(text, span[0])["source"]))
            start += len(lines)
    return NotebookText(_module(cells), "utf-8", False, data, text, tuple(cells), tuple(notes))


def _module(cells: list[Cell] | tuple[Cell, ...]) -> str:
    """The module's text: the Python of all cells, one below the other."""
    return "\n".join("\n".join(python_lines(cell.lines) or [""] * len(cell.lines)) for cell in cells)


def _language(document: dict[str, Any]) -> str:
    """The language of a notebook's kernel; Python where nothing is said."""
    metadata = document.get("metadata")
    for name, key in (("language_info", "name"), ("kernelspec", "language")):
        table = metadata.get(name) if isinstance(metadata, dict) else None
        if isinstance(table, dict) and isinstance(table.get(key), str):
            return str(table[key]).lower()
    return "python"
