"""The action "Insert example inputs": the inputs that a check made up, as a comment above the definition, to be edited.

What the comment means is the worker's business (`dynamo/worker/inputs/examples.py`): the next check runs it as it
stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types

from graphmend.analysis.syntax.span import Span
from graphmend.server.documents import outline
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.session import Session

if TYPE_CHECKING:
    from graphmend.dynamo.report import TargetReport

_COMMENT = re.compile(r"#\s*graphmend:\s*example\b")


class _Edit(NamedTuple):
    span: Span
    text: str


def actions(session: Session, document: Document, place: types.Range) -> list[types.CodeAction]:
    """The action on the head of a class or function whose last check made inputs up, or found none."""
    if not session.client.capabilities.action_literals or document.host is not document:
        return []
    lines = document.text
    begin, end = convert.offsets_of(lines, place, session.encoding)
    for definition in outline.definitions(lines.text):
        head = lines.offset(lines.position(definition.at)[0] + 1, 0)
        if not (definition.begin <= end and begin < max(head, definition.at + 1)):
            continue
        target = session.verification.checked(document).target(document, definition.name)
        example = _example(target) if target is not None else None
        row = lines.position(definition.begin)[0]
        if example is None or (row and _COMMENT.search(lines.line(row - 1))):
            continue
        edits = [_Edit(Span(row + 1, 0, row + 1, 0), f"# graphmend: example {example}{_newline(lines.text)}")]
        edit = convert.workspace_edit(
            [(document.uri, document.version, convert.text_edits(lines, edits, session.encoding))],
            versioned=session.client.capabilities.versioned_edits,
        )
        kind = types.CodeActionKind.RefactorRewrite
        return [types.CodeAction(title="Insert example inputs", kind=kind, edit=edit)]
    return []


def _example(target: TargetReport) -> str | None:
    """What to write; None where inputs are declared already."""
    if target.status == "checked":
        return target.inputs if target.origin == "synthesised" or target.origin.startswith("as in ") else None
    found = re.search(r"# graphmend: example (.*)$", target.problem or "")
    return found[1] if target.status == "no-inputs" and found else None


def _newline(text: str) -> str:
    """The line end that the text uses first."""
    found = re.search(r"\r\n|\n|\r", text)
    return found[0] if found else "\n"
