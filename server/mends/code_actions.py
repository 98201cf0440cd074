"""Code actions: mending one finding, mending all of a file, taking a finding back, and writing example inputs.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#textDocument_codeAction
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from graphmend.analysis.finding import Finding
from graphmend.server.analyses.document_analysis import Unavailable
from graphmend.server.diagnostics import convert_finding
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.lsp.command_names import ASK, MEND, MEND_AND_VERIFY
from graphmend.server.mends import example_inputs, mend_edits
from graphmend.server.session import Session, ShownFinding

log = logging.getLogger(__name__)

FIX_ALL = "source.fixAll.graphmend"
EXAMPLE = types.CodeActionKind.RefactorRewrite


def register(server: LanguageServer, session: Session) -> None:
    can = session.client.capabilities
    options = types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL, EXAMPLE], resolve_provider=can.action_resolve
    )

    @server.feature(types.TEXT_DOCUMENT_CODE_ACTION, options if can.action_literals else None)
    async def actions(params: types.CodeActionParams) -> list[types.CodeAction | types.Command]:
        document = session.documents.get(params.text_document.uri)
        if document is None:
            return []
        found: list[types.CodeAction | types.Command] = []
        if _wanted(types.CodeActionKind.QuickFix, params.context):
            found += await _quick_fixes(session, document, params.range)
        if _wanted(EXAMPLE, params.context):
            found += example_inputs.actions(session, document, params.range)
        whole = document.host is document  # a notebook's cell is not mended by itself
        if whole and can.action_literals and params.context.only and _wanted(FIX_ALL, params.context):
            found += await _fix_all(session, document)
        return found

    if can.action_resolve:

        @server.feature(types.CODE_ACTION_RESOLVE)
        async def resolve(action: types.CodeAction) -> types.CodeAction:
            action.edit = await _resolved(session, action.data)
            return action


def _wanted(kind: str, context: types.CodeActionContext) -> bool:
    """A client that names kinds wants those and what lies below them (`source` holds `source.fixAll`)."""
    if context.only is None:
        return True
    return any(kind == only or kind.startswith(f"{only}.") or only == "" for only in context.only)


async def _quick_fixes(
    session: Session, document: Document, place: types.Range
) -> list[types.CodeAction | types.Command]:
    shown = await session.current(document)
    begin, end = convert.offsets_of(document.text, place, session.encoding)  # of the text of now: it may have changed
    actions: list[types.CodeAction | types.Command] = []
    mendable: set[str] = set()
    for one in shown:
        if _touches(document, one.finding, begin, end):
            offers = await mend_edits.offers(session, document, one.finding)
            if any(mend_edits.is_preferred(offer.fix) for offer in offers):
                mendable.add(one.finding.code)
            for offer in offers:
                actions += await _mend(session, document, one, offer)
            actions += _verified(session, document, one, offers)
            actions += _asked(session, document, one, offers)
    touched = [one for one in shown if _touches(document, one.finding, begin, end)]
    for one in touched:
        actions += _ignore(session, document, one)
    if session.client.capabilities.action_literals:
        for code in dict.fromkeys(one.finding.code for one in touched):
            actions += await _of_rule(session, document, code, shown, code in mendable)
    return actions


async def _of_rule(
    session: Session, document: Document, code: str, shown: Sequence[ShownFinding], mendable: bool
) -> list[types.CodeAction]:
    """What can be done about all findings of a rule, and what can be read about it; `mendable` where one is safely."""
    actions, own = [], [one for one in shown if one.finding.code == code]
    if document.host is document:
        if mendable and len(own) > 1:
            actions += await _fix_all(session, document, code)
        edit = mend_edits.ignoring_in_file(session, document, code)
        if edit is not None:
            title = f"Ignore {code} in this file"
            actions.append(types.CodeAction(title, kind=types.CodeActionKind.QuickFix, edit=edit))
    if (command := session.client.capabilities.explain_command) is not None:
        title = f"Explain {code}"
        explain = types.Command(title, command, arguments=[code])
        actions.append(types.CodeAction(title, kind=types.CodeActionKind.QuickFix, command=explain))
    return actions


def _touches(document: Document, finding: Finding, begin: int, end: int) -> bool:
    """The range that was asked for decides, and not what a client remembers of diagnostics: Neovim 0.7 sends the ranges
    of those in bytes, whatever was agreed."""
    span, lines = finding.span, document.text
    return lines.offset(span.line - 1, span.column) <= end and begin <= lines.offset(span.end_line - 1, span.end_column)


async def _mend(
    session: Session, document: Document, shown: ShownFinding, offer: mend_edits.Offer
) -> list[types.CodeAction | types.Command]:
    fix, can = offer.fix, session.client.capabilities
    title = mend_edits.title(shown.finding, fix)
    data = _data(document, shown, offer)
    if not can.action_literals:
        return [types.Command(title, MEND, arguments=[data])] if fix.applicability != "display" else []
    action = types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[convert_finding.of(session, document, shown)],
        is_preferred=True if can.action_preferred and mend_edits.is_preferred(fix) else None,
    )
    if fix.applicability == "display":
        action.disabled = types.CodeActionDisabled(fix.reason)
        return [action] if can.action_disabled else []
    if can.action_resolve:
        action.data = data
        return [action]
    try:
        action.edit = await mend_edits.edit(session, document, offer)
    except Unavailable as error:
        log.info("%s: %s cannot be made: %s", document.uri, fix.rewrite, error)
        return []
    return [action]


def _data(document: Document, shown: ShownFinding, offer: mend_edits.Offer) -> dict[str, str]:
    """What names a mend when it is asked for later."""
    return {
        "uri": document.uri,
        "key": shown.finding.key,
        "code": shown.finding.code,
        "rewrite": offer.fix.rewrite,
    }


def _verified(
    session: Session, document: Document, shown: ShownFinding, offers: Sequence[mend_edits.Offer]
) -> list[types.CodeAction]:
    """The best mend again, made only if TorchDynamo finds nothing that differs; where checks may run."""
    can = session.client.capabilities
    best = next((offer for offer in offers if offer.fix.applicability != "display"), None)
    if best is None or not (can.action_literals and can.apply_edit):
        return []
    if session.verification.refusal(document.host, trusted=session.trusted) is not None:
        return []
    title = f"Mend and verify: {best.fix.title}"
    return [
        types.CodeAction(
            title=title,
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[convert_finding.of(session, document, shown)],
            command=types.Command(title, MEND_AND_VERIFY, arguments=[_data(document, shown, best)]),
        )
    ]


def _asked(
    session: Session, document: Document, shown: ShownFinding, offers: Sequence[mend_edits.Offer]
) -> list[types.CodeAction]:
    """A question to the user's language model, where one is set and no mend may be applied. A command without an edit,
    never preferred: nothing that mends on its own can take it.
    """
    can = session.client.capabilities
    name = session.model(document)
    if name is None or any(offer.fix.applicability != "display" for offer in offers):
        return []
    if not (can.action_literals and can.apply_edit) or document.host is not document:
        return []
    title = f"Ask {name} for a mend (runs your code)"
    action = types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[convert_finding.of(session, document, shown)],
        command=types.Command(title, ASK, arguments=[{"uri": document.uri, "key": shown.finding.key}]),
    )
    if can.marks_llm_actions:
        action.tags = [types.CodeActionTag.LlmGenerated]
    return [action]


def _ignore(session: Session, document: Document, shown: ShownFinding) -> list[types.CodeAction | types.Command]:
    if not session.client.capabilities.action_literals:
        return []
    edit = mend_edits.ignoring(session, document, shown.finding)
    if edit is None:
        return []
    return [
        types.CodeAction(
            title=f"Ignore {shown.finding.code} on this line",
            kind=types.CodeActionKind.QuickFix,
            diagnostics=[convert_finding.of(session, document, shown)],
            edit=edit,
        )
    ]


async def _fix_all(session: Session, document: Document, code: str | None = None) -> list[types.CodeAction]:
    """The action that makes every safe mend of the document, or those of a rule's findings."""
    title = f"Mend all {code or 'graph breaks'} that can be mended safely"
    action = types.CodeAction(title=title, kind=FIX_ALL if code is None else types.CodeActionKind.QuickFix)
    if session.client.capabilities.action_resolve:
        action.data = {"uri": document.uri, "all": True, "code": code}
        return [action]
    action.edit = await mend_edits.edit_all(session, document, code)
    return [action] if action.edit is not None else []


async def _resolved(session: Session, data: Any) -> types.WorkspaceEdit:
    """The edit of an action, made for the document as it is now."""
    document = session.documents.get(str(data.get("uri"))) if isinstance(data, Mapping) else None
    if document is None:
        raise JsonRpcException("the document is not open", types.LSPErrorCodes.ContentModified)
    if data.get("all"):
        return await mend_edits.edit_all(session, document, data.get("code")) or types.WorkspaceEdit(changes={})
    try:
        return await mend_edits.edit_of(session, document, data)
    except Unavailable as error:
        raise JsonRpcException(str(error), types.LSPErrorCodes.ContentModified) from error
