"""What a finding is to the client: one function makes every diagnostic, `of`, whether it is pushed or pulled."""

from __future__ import annotations

import re

from lsprotocol import types

from graphmend.analysis.finding import Finding
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.session import Session, ShownFinding

#: how messages say that a place breaks the graph
_BREAKS = re.compile(r"\bbreaks\b")
_URL = "https://github.com/graphmend/graphmend/blob/main/docs/rules/{code}.md"


def of(session: Session, document: Document, shown: ShownFinding) -> types.Diagnostic:
    """A finding as the client is to see it."""
    finding, can = shown.finding, session.client.capabilities
    return types.Diagnostic(
        range=convert.range_of(document.text, finding.span, session.encoding),
        message=_message(shown),
        severity=severity(session, document, shown),
        source=convert.SOURCE,
        code=finding.code,
        code_description=description(session, finding.code),
        data={"key": finding.key} if can.diagnostic_data else None,
        related_information=_related(session, finding) if can.related_information and finding.related else None,
    )


def description(session: Session, code: str) -> types.CodeDescription | None:
    """The link behind a code, for clients that show one."""
    return types.CodeDescription(url(code)) if session.client.capabilities.code_description else None


def _message(shown: ShownFinding) -> str:
    """The finding's message with the verdict. Where TorchDynamo traced the place and did not break, or did not come to
    trace it, that the graph breaks here is no longer said."""
    message = shown.finding.message
    if shown.verdict is not None and shown.verdict.state in ("not seen", "runs eagerly"):
        message = _BREAKS.sub("can break", message, count=1)
    return f"{message} ({shown.says})" if shown.says else message


def severity(session: Session, document: Document, shown: ShownFinding) -> types.DiagnosticSeverity:
    chosen = session.configuration(document).severity(shown.finding.code)
    if chosen in convert.SEVERITIES:
        return convert.SEVERITIES[chosen]
    if shown.finding.effect == "recompiles":
        return types.DiagnosticSeverity.Information
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
