"""Hover over a finding: why the graph breaks here, how that is known, and what can be done."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.analysis.finding import Finding
from graphmend.server.diagnostics import convert_finding
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.mends import mend_edits
from graphmend.server.session import Session, ShownFinding

if TYPE_CHECKING:
    from graphmend.transforms.fix import Fix

_EFFECTS = {
    "splits": "the graph is split here",
    "skips-frame": "the whole function runs eagerly",
    "recompiles": "compiled again for another value",
    "raises": "the program raises here under `fullgraph=True`",
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


def _holds(document: Document, shown: ShownFinding, offset: int) -> bool:
    span, lines = shown.finding.span, document.text
    begin, end = lines.offset(span.line - 1, span.column), lines.offset(span.end_line - 1, span.end_column)
    return begin <= offset <= end


async def _explain(session: Session, document: Document, shown: ShownFinding) -> str:
    """What breaks, what it costs and what to do; then how that is known."""
    finding = shown.finding  # its message is not repeated: editors show it with the squiggle
    known = f", TorchDynamo's [{finding.gb_id}]({convert_finding.break_url(finding.gb_id)})" if finding.gb_id else ""
    rule = f"**[{finding.code}]({convert_finding.url(finding.code)}) {finding.name}**"
    parts = [f"{rule}: {_EFFECTS[finding.effect]}{known}."]
    if shown.says:
        parts.append(f"_{shown.says[0].upper()}{shown.says[1:]}._")
    parts.append(await _way_out(session, document, finding))
    if finding.default_flags_only:
        parts.append("Under `fullgraph=True`, or with torch's capture flags, this does not break.")
    if shown.verdict:
        parts.append(shown.verdict.reason[0].upper() + shown.verdict.reason[1:] + ".")
    told = await mend_edits.evidence(session, document, finding)
    if told:
        parts.append("How it is known:\n\n" + "\n".join(f"{i}. {says}" for i, says in enumerate(told, start=1)))
    return "\n\n".join(part for part in parts if part)


async def _way_out(session: Session, document: Document, finding: Finding) -> str:
    """What to do: the mends; where there is none, what a person can do and why the tool cannot."""
    fixes = [offer.fix for offer in await mend_edits.offers(session, document, finding)]
    if fixes:
        return "\n".join(f"- mend: {fix.title}{_caveat(fix)}" for fix in fixes)
    reason = await mend_edits.refusal(session, document, finding)
    return "\n\n".join([*([finding.advice] if finding.advice else ()), *([f"No mend: {reason}"] if reason else ())])


def _caveat(fix: Fix) -> str:
    """What a mend changes; a safe one changes nothing but what the user accepts."""
    mark = "accepted" if fix.applicability == "safe" else fix.applicability
    return f" ({mark}: {fix.reason})" if fix.differences or fix.applicability != "safe" else ""


def _plain(markdown: str) -> str:
    """The same text for clients that show it as it is."""
    text = re.sub(r"\[([^\]]+)\]\(([^)]+)\)", r"\1 <\2>", markdown)
    return re.sub(r"\*\*|`|(?<!\w)_|_(?!\w)", "", text).replace("\n\n---\n\n", "\n\n")
