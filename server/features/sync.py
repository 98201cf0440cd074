"""Documents as the client opens, edits, saves and closes them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.server.diagnostics.publish import Publisher
from graphmend.server.diagnostics.workspace_diagnostics import Workspace
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.session import Session

log = logging.getLogger(__name__)


def register(server: LanguageServer, session: Session, publisher: Publisher, workspace: Workspace) -> None:
    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def did_open(params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        document = Document(item.uri, item.version, item.text, convert.path_of(item.uri))
        session.opened(document)
        publisher.publish(document)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def did_change(params: types.DidChangeTextDocumentParams) -> None:
        document = session.documents.get(params.text_document.uri)
        if document is None:
            log.warning("a change of %s, which is not open, was dropped", params.text_document.uri)
            return
        change(session, document, params.text_document.version, params.content_changes)
        publisher.publish(document)

    @server.feature(types.TEXT_DOCUMENT_DID_SAVE, types.SaveOptions(include_text=False))
    def did_save(params: types.DidSaveTextDocumentParams) -> None:
        document = session.documents.get(params.text_document.uri)
        if document is not None:
            session.spawn(session.saved(document))

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    def did_close(params: types.DidCloseTextDocumentParams) -> None:
        document = session.closed(params.text_document.uri)
        if document is not None:
            publisher.withdraw(document, workspace.of(document.path))


def change(
    session: Session, document: Document, version: int, changes: Iterable[types.TextDocumentContentChangeEvent]
) -> None:
    """Applies the changes in order: each speaks of the text that the one before it left."""
    if version < document.version:
        log.warning("%s goes back from version %d to %d", document.uri, document.version, version)
    for part in changes:
        if isinstance(part, types.TextDocumentContentChangePartial):
            begin, end = convert.offsets_of(document.text, part.range, session.encoding)
            document.replace(begin, end, part.text)
        else:
            document.replace_all(part.text)
    document.version = version
