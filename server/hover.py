"""Hover over a finding: why the graph breaks here, how that is known, and what can be done."""

from __future__ import annotations

import re

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.server import convert, diagnostics, mending
from graphmend.server.documents import Document
from graphmend.server.session import Session, Shown

_EFFECTS = {
    "splits": "The graph is split here.",
    "skips-frame": "The whole function runs eagerly.",
    "recompiles": "Each call may compile again.",
    "raises": "The program raises here under `fullgraph=True`.",
}


def register(server: LanguageServer, session: Session) -> None:
    @server.feature(types.TEXT_DOCUMENT_HOVER)
    async def hover(params: types.HoverParams) -> types.Hover | None:
        document = session.documents.get(params.text_document.uri)
        if document is None:
            return None
        shown = await session.current(document)
        offset = convert.offset_of(document.text, params.position, session.encoding)
        under = [one for one in shown if _holds(document, one, offset)]
        if not under:
            return None
        text = "\n\n---\n\n".join([await _explain(session, document, one) for one in under])
        markdown = session.client.capabilities.markdown_hover
        return types.Hover(
            contents=types.MarkupContent(types.MarkupKind.Markdown, text)
            if markdown
            else types.MarkupContent(types.MarkupKind.PlainText, _plain(text)),
            range=convert.range_of(document.text, under[0].finding.span, session.encoding),
        )


def _holds(document: Document, shown: Shown, offset: int) -> bool:
    span, lines = shown.finding.span, document.text
    begin, end = lines.offset(span.line - 1, span.column), lines.offset(span.end_line - 1, span.end_column)
    return begin <= offset <= end


async def _explain(session: Session, document: Document, shown: Shown) -> str:
    finding = shown.finding
    parts = [f"**{finding.message}** [{finding.code}]({diagnostics.url(finding.code)})"]
    if shown.says:
        parts.append(f"_{shown.says[0].upper()}{shown.says[1:]}._")
    if shown.verdict:
        parts.append(shown.verdict.reason + ".")
    parts.append(_EFFECTS[finding.effect])
    told = await mending.evidence(session, document, finding)
    if told:
        parts.append("\n".join(f"{i}. {says}" for i, says in enumerate(told, start=1)))
    if finding.advice:
        parts.append(finding.advice)
    parts.append(await _mends(session, document, shown))
    if finding.default_flags_only:
        parts.append("Under `fullgraph=True`, or with torch's capture flags, this does not break.")
    if finding.gb_id:
        parts.append(f"TorchDynamo calls this break [{finding.gb_id}]({diagnostics.break_url(finding.gb_id)}).")
    return "\n\n".join(part for part in parts if part)


async def _mends(session: Session, document: Document, shown: Shown) -> str:
    fixes = [offer.fix for offer in await mending.offers(session, document, shown.finding)]
    if fixes:
        return "Mends:\n" + "\n".join(f"- {fix.title} ({fix.applicability}: {fix.reason})" for fix in fixes)
    reason = await mending.refusal(session, document, shown.finding)
    return f"No mend: {reason}" if reason else ""


def _plain(markdown: str) -> str:
    """The same text for clients that show it as it is."""
    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"\1 <\2>", markdown)
    return re.sub(r"\*\*|`|(?<!\w)_|_(?!\w)", "", text).replace("\n\n---\n\n", "\n\n")
