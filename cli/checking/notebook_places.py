"""Findings in notebooks, with the cell that each is in and its place there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphmend.cli.checking.file_report import ReportedFinding
from graphmend.workspace import files
from graphmend.workspace.notebooks import reading

Cells = dict[tuple[str, int], str]


def in_cells(
    items: Iterable[ReportedFinding], known: Mapping[str, files.FileText]
) -> tuple[list[ReportedFinding], Cells]:
    """The findings, and the texts of the cells that they are in. `known` holds notebooks that are not on disk."""
    notebooks = dict(known)
    placed: list[ReportedFinding] = []
    cells: Cells = {}
    for item in items:
        path = item.finding.path
        if path.endswith(reading.SUFFIX) and path not in notebooks:
            try:
                notebooks[path] = reading.read(path)
            except files.FileProblem:
                notebooks[path] = files.FileText("", "utf-8", False, b"")
        notebook = notebooks.get(path)
        if not isinstance(notebook, reading.NotebookText) or not notebook.cells:
            placed.append(item)
            continue
        number, span = notebook.place(item.finding.span)
        cells[path, number] = next("\n".join(cell.lines) for cell in notebook.cells if cell.number == number)
        offers = tuple(offer._replace(edits=()) for offer in item.offers)  # those count in the module
        placed.append(replace(item, finding=replace(item.finding, span=span), cell=number, offers=offers))
    return placed, cells
