"""Notebooks as the client opens, edits, saves and closes them.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#notebookDocument_synchronization
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.server.diagnostics.publish import Publisher
from graphmend.server.documents.notebooks import Cell, Notebook
from graphmend.server.features import sync
from graphmend.server.lsp import convert
from graphmend.server.session import Session

log = logging.getLogger(__name__)

OPTIONS = types.NotebookDocumentSyncOptions(
    notebook_selector=[types.NotebookDocumentFilterWithCells(cells=[types.NotebookCellLanguage("python")])], save=True
)


def register(server: LanguageServer, session: Session, publisher: Publisher) -> None:
    @server.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenNotebookDocumentParams) -> None:
        uri = params.notebook_document.uri
        cells = _opened(session, params.cell_text_documents)
        order = [cell.document for cell in params.notebook_document.cells]
        notebook = Notebook(uri, convert.path_of(uri), order, cells)
        session.documents.open(notebook)
        publisher.publish(notebook)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeNotebookDocumentParams) -> None:
        notebook = session.documents.get(params.notebook_document.uri)
        if not isinstance(notebook, Notebook):
            log.warning("a change of %s, which is not open, was dropped", params.notebook_document.uri)
            return
        cells = params.change.cells
        if cells is None:
            return
        if cells.structure is not None:
            _rearrange(session, publisher, notebook, cells.structure)
        for content in cells.text_content or ():
            cell = session.documents.get(content.document.uri)
            if isinstance(cell, Cell):
                sync.change(session, cell, content.document.version, content.changes)
        notebook.refresh()
        publisher.publish(notebook)

    @server.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseNotebookDocumentParams) -> None:
        notebook = session.documents.get(params.notebook_document.uri)
        if not isinstance(notebook, Notebook):
            return
        for cell in notebook.parts:
            session.documents.close(cell.uri)
            publisher.withdraw(cell)
        session.closed(notebook.uri)


def _rearrange(
    session: Session, publisher: Publisher, notebook: Notebook, structure: types.NotebookDocumentCellChangeStructure
) -> None:
    """Cells were added, moved or removed: a splice of the list of all cells."""
    opened = _opened(session, structure.did_open or ())
    for closed in structure.did_close or ():
        cell = session.documents.close(closed.uri)
        if cell is not None:
            publisher.withdraw(cell)
    begin, end = structure.array.start, structure.array.start + structure.array.delete_count
    notebook.splice(begin, end, [cell.document for cell in structure.array.cells or ()], opened)


def _opened(session: Session, items: Iterable[types.TextDocumentItem]) -> dict[str, Cell]:
    cells = {}
    for item in items:
        if item.language_id == "python":
            cells[item.uri] = Cell(item.uri, item.version, item.text, convert.path_of(item.uri))
            session.documents.open(cells[item.uri])
    return cells
