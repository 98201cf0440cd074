"""Mends of open documents as edits that the client can make: what the actions and the commands both ask."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from lsprotocol import types

from graphmend.analysis.finding import Finding, Span
from graphmend.analysis.source import LineIndex
from graphmend.server import convert, ignore
from graphmend.server.documents import Document
from graphmend.server.session import Session
from graphmend.transforms.fix import Fix, Refusal


class Gone(Exception):
    """The finding or the mend that was asked for does not exist any more."""


class _Edit(NamedTuple):
    span: Span
    text: str


async def offers(session: Session, document: Document, finding: Finding) -> list[Fix]:
    """The mends that the user is to see, best first. Unsafe ones are among them unless they were switched off."""
    unsafe = session.configuration(document).values.get("unsafe-fixes", True)
    answers = await session.analyses.mends(document, finding)
    return [fix for fix in answers if isinstance(fix, Fix) and (unsafe or fix.applicability != "unsafe")]


async def refusal(session: Session, document: Document, finding: Finding) -> str | None:
    """Why there is no mend; None where there is one."""
    answers = await session.analyses.mends(document, finding)
    if any(isinstance(answer, Fix) for answer in answers):
        return None
    return next((answer.reason for answer in answers if isinstance(answer, Refusal)), None)


def title(fix: Fix) -> str:
    return f"Mend graph break: {fix.title}" + (" (unsafe)" if fix.applicability == "unsafe" else "")


def is_preferred(fix: Fix) -> bool:
    return fix.applicability == "safe" and not fix.silences


async def edit(session: Session, document: Document, fix: Fix) -> types.WorkspaceEdit:
    """The fix's edit. Raises `Unmendable`, and `Gone` where the document changed while the edit was made."""
    stamp = document.stamp
    edits = await session.analyses.edits(fix)
    if document.stamp != stamp:
        raise Gone("the document changed while the mend was made")
    warning = None
    if fix.applicability == "unsafe" and session.client.capabilities.change_annotations:
        warning = types.ChangeAnnotation(label="Unsafe mend", needs_confirmation=True, description=fix.reason)
    return _edit(session, document, convert.text_edits(document.text, edits, session.encoding), warning)


async def edit_of(session: Session, document: Document, data: Mapping[str, Any]) -> types.WorkspaceEdit:
    """The edit that an action promised: the same mend of the same finding, in the document as it is now."""
    for shown in await session.current(document):
        if (shown.finding.key, shown.finding.code) == (data.get("key"), data.get("code")):
            for fix in await offers(session, document, shown.finding):
                if fix.rewrite == data.get("rewrite") and fix.applicability != "display":
                    return await edit(session, document, fix)
    raise Gone("this graph break is not there any more, or is not mended in this way")


async def edit_all(session: Session, document: Document) -> types.WorkspaceEdit | None:
    """Every safe mend of the document at once; None where there is none."""
    while True:
        stamp, old = document.stamp, document.text.text
        new = await session.analyses.mended(document, unsafe=False)
        if document.stamp == stamp:
            break
    edits = convert.text_edits(document.text, _differences(old, new), session.encoding)
    return _edit(session, document, edits) if edits else None


def ignoring(session: Session, document: Document, finding: Finding) -> types.WorkspaceEdit | None:
    """The edit that takes a finding back; None where it is taken back already."""
    change = ignore.edit(document.text, finding)
    if change is None:
        return None
    return _edit(session, document, convert.text_edits(document.text, [change], session.encoding))


def _edit(
    session: Session, document: Document, edits: list[types.TextEdit], warning: types.ChangeAnnotation | None = None
) -> types.WorkspaceEdit:
    versioned = session.client.capabilities.versioned_edits
    return convert.workspace_edit(document.uri, document.version, edits, versioned=versioned, warning=warning)


def _differences(old: str, new: str) -> Iterator[_Edit]:
    """The runs of lines that differ."""
    before, after = _lines(old), _lines(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind != "equal":
            begin = (a + 1, 0) if a < len(before) else (len(before), len(before[-1]))
            end = (b + 1, 0) if b < len(before) else (len(before), len(before[-1]))
            yield _Edit(Span(*begin, *end), "".join(after[c:d]))


def _lines(text: str) -> list[str]:
    """The lines with their ends, as positions count them (`splitlines` also ends lines at form feeds and U+2028)."""
    starts = LineIndex(text).starts
    return [text[begin:end] for begin, end in zip(starts, [*starts[1:], len(text)], strict=True)]
