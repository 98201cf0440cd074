"""Mends of open documents as edits that the client can make: what the actions and the commands both ask."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types

from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.span import Span
from graphmend.server.analyses.document_analysis import Unavailable
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.lsp.convert import Replacement
from graphmend.server.mends import suppression_edit
from graphmend.server.session import Session

if TYPE_CHECKING:
    from graphmend.transforms.fix import Fix


class _Edit(NamedTuple):
    span: Span
    text: str


class Offer(NamedTuple):
    """A mend for one state of a document."""

    fix: Fix
    stamp: int


async def offers(session: Session, document: Document, finding: Finding) -> list[Offer]:
    """The mends that the user is to see, best first. Unsafe ones are among them unless they were switched off."""
    unsafe = session.configuration(document.host)["unsafe-fixes"]
    stamp = document.host.stamp
    mends = await session.analyses.mends(document.host, finding)
    if stamp != document.host.stamp:
        return []
    return [Offer(fix, stamp) for fix in mends.fixes if unsafe or fix.applicability != "unsafe"]


async def refusal(session: Session, document: Document, finding: Finding) -> str | None:
    """Why there is no mend; None where there is one."""
    mends = await session.analyses.mends(document.host, finding)
    return None if mends.fixes else mends.refusal


async def evidence(session: Session, document: Document, finding: Finding) -> tuple[str, ...]:
    """How a finding is known, as the text tells it now."""
    return (await session.analyses.mends(document.host, finding)).evidence or finding.evidence


def title(finding: Finding, fix: Fix) -> str:
    what = "recompilation" if finding.effect == "recompiles" else "graph break"
    return f"Mend {what}: {fix.title}" + (" (unsafe)" if fix.applicability == "unsafe" else "")


def is_preferred(fix: Fix) -> bool:
    return fix.applicability == "safe" and not fix.silences


async def edit(session: Session, document: Document, offer: Offer) -> types.WorkspaceEdit:
    """The edit of a mend. Raises `Unavailable`, also where the document changed since it was offered."""
    edits = await session.analyses.edits(document.host, offer.fix)
    if document.host.stamp != offer.stamp:
        raise Unavailable("the document changed while the mend was made")
    warning = None
    if offer.fix.applicability == "unsafe" and session.client.capabilities.change_annotations:
        warning = types.ChangeAnnotation(label="Unsafe mend", needs_confirmation=True, description=offer.fix.reason)
    return _edit(session, document.host, edits, warning)


async def edit_of(session: Session, document: Document, data: Mapping[str, Any]) -> types.WorkspaceEdit:
    """The edit that an action promised: the same mend of the same finding, in the document as it is now."""
    _, offer = await _promised(session, document, data)
    return await edit(session, document, offer)


async def preview(
    session: Session, document: Document, data: Mapping[str, Any]
) -> tuple[Finding, types.WorkspaceEdit, str, tuple[str, ...]]:
    """The finding that an action speaks of, the edit that it promised, the text after it, and the kinds of ways in
    which the mend says that it differs."""
    finding, offer = await _promised(session, document, data)
    edits = await session.analyses.edits(document.host, offer.fix)
    if document.host.stamp != offer.stamp:
        raise Unavailable("the document changed while the mend was made")
    text, lines = document.host.text.text, document.host.text
    for each in sorted(edits, key=lambda e: e.span, reverse=True):
        begin = lines.offset(each.span.line - 1, each.span.column)
        end = lines.offset(each.span.end_line - 1, each.span.end_column)
        text = text[:begin] + each.text + text[end:]
    named = tuple(dict.fromkeys(difference.kind for difference in offer.fix.differences))
    return finding, _edit(session, document.host, edits), text, named


async def _promised(session: Session, document: Document, data: Mapping[str, Any]) -> tuple[Finding, Offer]:
    for shown in await session.current(document):
        if (shown.finding.key, shown.finding.code) == (data.get("key"), data.get("code")):
            for offer in await offers(session, document, shown.finding):
                if offer.fix.rewrite == data.get("rewrite") and offer.fix.applicability != "display":
                    return shown.finding, offer
    raise Unavailable("this graph break is not there any more, or is not mended in this way")


async def edit_all(session: Session, document: Document, code: str | None = None) -> types.WorkspaceEdit | None:
    """Every safe mend of the document at once, or of the findings with a code; None where there is none."""
    from graphmend.transforms.code.text_edits import line_edits

    while True:
        stamp, old = document.stamp, document.text.text
        new = await session.analyses.mended(document, unsafe=False, code=code)
        if document.stamp == stamp:
            break
    edits = list(line_edits(old, new))
    return _edit(session, document, edits) if edits else None


def ignoring(session: Session, document: Document, finding: Finding) -> types.WorkspaceEdit | None:
    """The edit that takes a finding back; None where it is taken back already."""
    change = suppression_edit.edit(document.text, finding)
    if change is None:
        return None
    return _workspace_edit(session, [(document, [change])], None)


def ignoring_in_file(session: Session, document: Document, code: str) -> types.WorkspaceEdit | None:
    """The edit that takes every finding with a code back; None where that is so already."""
    change = suppression_edit.file_edit(document.text, code)
    return None if change is None else _workspace_edit(session, [(document, [change])], None)


def _edit(
    session: Session, host: Document, edits: Iterable[Replacement], warning: types.ChangeAnnotation | None = None
) -> types.WorkspaceEdit:
    """Edits of what is analysed, as edits of the documents that the client knows."""
    of_part: dict[Document, list[Replacement]] = {}
    for each in edits:
        for part in host.parts:
            if (span := part.inside(each.span)) is not None:
                of_part.setdefault(part, []).append(_Edit(span, each.text))
                break
        else:
            raise Unavailable("the mend reaches over the border of a cell")
    return _workspace_edit(session, list(of_part.items()), warning)


def _workspace_edit(
    session: Session,
    edits: Sequence[tuple[Document, Sequence[Replacement]]],
    warning: types.ChangeAnnotation | None,
) -> types.WorkspaceEdit:
    if warning is not None:  # whoever confirms it in parts gets code without its import
        edits = [(part, [_as_one(part, new)]) for part, new in edits]
    return convert.workspace_edit(
        [(part.uri, part.version, convert.text_edits(part.text, new, session.encoding)) for part, new in edits],
        versioned=session.client.capabilities.versioned_edits,
        warning=warning,
    )


def _as_one(part: Document, edits: Sequence[Replacement]) -> Replacement:
    """Edits of a document as one, with the text between them."""
    ordered = sorted(edits, key=lambda each: each.span)
    first, last = ordered[0].span, ordered[-1].span
    found, end = "", part.text.offset(first.line - 1, first.column)
    for each in ordered:
        found += part.text.text[end : part.text.offset(each.span.line - 1, each.span.column)] + each.text
        end = part.text.offset(each.span.end_line - 1, each.span.end_column)
    return _Edit(Span(first.line, first.column, last.end_line, last.end_column), found)
