"""Notebooks: the cells in their order are one module to the analysis, and documents of their own to the client.

The module's text is made of the cells' lines, with what is IPython's (`%magic`, `!command`, `name?`) left out where it
keeps a cell from being Python. Knows no protocol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphmend.analysis.syntax.notebook_cells import definitions_only, python_lines
from graphmend.analysis.syntax.span import Span
from graphmend.server.documents.open_documents import Document


class Notebook(Document):
    """The module that a notebook's cells make."""

    def __init__(self, uri: str, path: str, order: Sequence[str], cells: Mapping[str, Cell]) -> None:
        super().__init__(uri, 0, "", path)
        self._order: list[str] = []
        self._known: dict[str, Cell] = {}
        self.splice(0, 0, order, cells)

    @property
    def parts(self) -> tuple[Document, ...]:
        return tuple(self._cells)

    def runnable(self, text: str) -> str:
        return definitions_only(text)

    def splice(self, begin: int, end: int, order: Sequence[str], opened: Mapping[str, Cell]) -> None:
        """Put other cells in the place of some. `order` names them, `opened` holds those that are Python and new."""
        self._order[begin:end] = order
        self._known = {uri: cell for uri, cell in {**self._known, **opened}.items() if uri in self._order}
        self._cells = [self._known[uri] for uri in self._order if uri in self._known]
        for cell in self._cells:
            cell.notebook = self
        self.refresh()

    def refresh(self) -> None:
        """A cell was edited."""
        lines: list[str] = []
        self._starts = []
        for cell in self._cells:
            self._starts.append(len(lines))
            lines += cell.python_lines()
        self.replace_all("\n".join(lines))

    def start(self, cell: Cell) -> int:
        """How many lines stand before a cell."""
        return self._starts[self._cells.index(cell)]


class Cell(Document):
    """One cell with Python code."""

    notebook: Notebook

    @property
    def host(self) -> Document:
        return self.notebook

    def host_line(self, line: int) -> int:
        return self.notebook.start(self) + line

    def inside(self, span: Span) -> Span | None:
        start = self.notebook.start(self)
        if not start < span.line or not span.end_line <= start + len(self.text):
            return None
        return span._replace(line=span.line - start, end_line=span.end_line - start)

    def python_lines(self) -> list[str]:
        """The cell's lines, without their ends and without what is not Python."""
        lines = [self.text.line(number) for number in range(len(self.text))]
        return python_lines(lines) or lines  # while one types, what does not parse is for the analysis to tell
