"""The border: our places and findings on one side, the protocol's types on the other. Nothing else converts columns.

Inside, lines count from 1 and columns are code points from 0. Outside, lines count from 0 and columns are code units of
the encoding that was agreed with the client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Protocol

from lsprotocol import types
from pygls.uris import from_fs_path, to_fs_path

from graphmend.analysis.syntax.source import Encoding, LineIndex
from graphmend.analysis.syntax.span import Span

SOURCE = "graphmend"

SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "information": types.DiagnosticSeverity.Information,
    "hint": types.DiagnosticSeverity.Hint,
}


class Replacement(Protocol):
    """What every kind of edit has: a place and what stands there afterwards."""

    @property
    def span(self) -> Span: ...
    @property
    def text(self) -> str: ...


def path_of(uri: str) -> str:
    """The file that a uri names; the uri itself where it names none (`untitled:`)."""
    path = to_fs_path(uri)
    return path if path and "\0" not in path else uri


def uri_of(path: str) -> str:
    """The uri of a path; documents that are no file have their uri as path."""
    return path if "://" in path or path.startswith("untitled:") else from_fs_path(path) or path


def range_of(lines: LineIndex, span: Span, encoding: Encoding) -> types.Range:
    return types.Range(
        types.Position(span.line - 1, lines.to_units(span.line - 1, span.column, encoding)),
        types.Position(span.end_line - 1, lines.to_units(span.end_line - 1, span.end_column, encoding)),
    )


def offset_of(lines: LineIndex, position: types.Position, encoding: Encoding) -> int:
    """An offset in the text; a place past a line's end means its end, past the last line the text's end."""
    return lines.offset(position.line, lines.from_units(position.line, position.character, encoding))


def offsets_of(lines: LineIndex, place: types.Range, encoding: Encoding) -> tuple[int, int]:
    """Begin and end in the text, in this order whatever order they came in."""
    begin, end = offset_of(lines, place.start, encoding), offset_of(lines, place.end, encoding)
    return (begin, end) if begin <= end else (end, begin)


def span_of(lines: LineIndex, place: types.Range, encoding: Encoding) -> Span:
    begin, end = offsets_of(lines, place, encoding)
    (line, column), (end_line, end_column) = lines.position(begin), lines.position(end)
    return Span(line + 1, column, end_line + 1, end_column)


def text_edits(lines: LineIndex, edits: Iterable[Replacement], encoding: Encoding) -> list[types.TextEdit]:
    return [types.TextEdit(range=range_of(lines, edit.span, encoding), new_text=edit.text) for edit in edits]


def workspace_edit(
    documents: Sequence[tuple[str, int, Sequence[types.TextEdit]]],
    *,
    versioned: bool,
    warning: types.ChangeAnnotation | None = None,
) -> types.WorkspaceEdit:
    """Edits of documents, by uri and version: bound to the version where the client understands that."""
    if not versioned:
        return types.WorkspaceEdit(changes={uri: list(edits) for uri, _, edits in documents})
    changes = []
    for uri, version, edits in documents:
        marked = edits if warning is None else [types.AnnotatedTextEdit("unsafe", e.range, e.new_text) for e in edits]
        identifier = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=version)
        changes.append(types.TextDocumentEdit(identifier, list(marked)))
    return types.WorkspaceEdit(
        document_changes=changes, change_annotations=None if warning is None else {"unsafe": warning}
    )


def result_id(diagnostics: str) -> str:
    """A name for what is sent: equal names, equal texts."""
    return hashlib.blake2b(diagnostics.encode(), digest_size=12).hexdigest()
