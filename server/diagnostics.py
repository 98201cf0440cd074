"""Diagnostics, pushed or pulled: one function makes them, `of`, and a client that can pull is not pushed to.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#textDocument_diagnostic
"""

from __future__ import annotations

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.analysis.finding import Finding
from graphmend.server import convert
from graphmend.server.documents import Document
from graphmend.server.session import Session, Shown

OPTIONS = types.DiagnosticOptions(identifier="graphmend", inter_file_dependencies=True, workspace_diagnostics=False)

_URL = "https://github.com/graphmend/graphmend/blob/main/docs/rules/{code}.md"


def register(server: LanguageServer, session: Session) -> None:
    @server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC, OPTIONS)
    async def pull(params: types.DocumentDiagnosticParams) -> types.DocumentDiagnosticReport:
        document = session.documents.get(params.text_document.uri)
        if document is None:
            return types.RelatedFullDocumentDiagnosticReport(items=[])
        diagnostics = await current(session, document)
        result_id = convert.result_id(diagnostics)
        if result_id == params.previous_result_id:
            return types.RelatedUnchangedDocumentDiagnosticReport(result_id=result_id)
        return types.RelatedFullDocumentDiagnosticReport(items=diagnostics, result_id=result_id)


async def current(session: Session, document: Document) -> list[types.Diagnostic]:
    """The diagnostics of the document's newest version."""
    return [of(session, document, shown) for shown in await session.current(document)]


def of(session: Session, document: Document, shown: Shown) -> types.Diagnostic:
    """A finding as the client is to see it."""
    finding, can = shown.finding, session.client.capabilities
    return types.Diagnostic(
        range=convert.range_of(document.text, finding.span, session.encoding),
        message=_message(shown),
        severity=_severity(session, document, shown),
        source=convert.SOURCE,
        code=finding.code,
        code_description=description(session, finding.code),
        data={"key": finding.key} if can.diagnostic_data else None,
        related_information=_related(session, finding) if can.related_information and finding.related else None,
    )


def description(session: Session, code: str) -> types.CodeDescription | None:
    """The link behind a code, for clients that show one."""
    return types.CodeDescription(url(code)) if session.client.capabilities.code_description else None


def _message(shown: Shown) -> str:
    finding = shown.finding
    return f"{finding.message} ({shown.says})" if shown.says else finding.message


def _severity(session: Session, document: Document, shown: Shown) -> types.DiagnosticSeverity:
    chosen = session.configuration(document).severity(shown.finding.code)
    if chosen in convert.SEVERITIES:
        return convert.SEVERITIES[chosen]
    state = shown.verdict.state if shown.verdict else None
    if state != "not seen" and (shown.finding.region == "compiled" or state == "confirmed"):
        return types.DiagnosticSeverity.Warning
    return types.DiagnosticSeverity.Information


def _related(session: Session, finding: Finding) -> list[types.DiagnosticRelatedInformation]:
    """Callers and compile sites; those in files that cannot be read are left out, for their columns are not known."""
    related = []
    for place in finding.related:
        if (found := session.place(place.path, place.span)) is not None:
            uri, lines, span = found
            location = types.Location(uri, convert.range_of(lines, span, session.encoding))
            related.append(types.DiagnosticRelatedInformation(location, place.message))
    return related


def url(code: str) -> str:
    """Where a rule is documented."""
    return _URL.format(code=code)


def break_url(gb_id: str) -> str:
    """Where torch documents a kind of break."""
    return f"https://meta-pytorch.github.io/compile-graph-break-site/gb/{gb_id.lower()}.html"
