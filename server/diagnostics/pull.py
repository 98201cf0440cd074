"""Diagnostics that the client asks for; one that can ask is not pushed to.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#textDocument_diagnostic
"""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.server.diagnostics.rendering import Renderer
from graphmend.server.lsp.pygls_internals import Json
from graphmend.server.session import Session

OPTIONS = types.DiagnosticOptions(identifier="graphmend", inter_file_dependencies=True, workspace_diagnostics=False)


def register(server: LanguageServer, session: Session, renderer: Renderer) -> None:
    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, OPTIONS)
    async def pull(params: types.DocumentDiagnosticParams) -> Json:
        document = session.documents.get(params.text_document.uri)
        if document is None:
            return session.client.encode(types.RelatedFullDocumentDiagnosticReport(items=[]))
        rendered = await renderer.current(document)
        result_id = rendered.result_id
        if result_id == params.previous_result_id:
            return session.client.encode(types.RelatedUnchangedDocumentDiagnosticReport(result_id=result_id))
        return Json(f'{{"kind": "full", "resultId": "{result_id}", "items": {rendered.items}}}')
