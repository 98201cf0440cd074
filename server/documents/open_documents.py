"""The open documents: their text, their versions, and the edits between versions. Knows no protocol and no analysis."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from graphmend.analysis.syntax.edits import Edit, difference
from graphmend.analysis.syntax.span import Span
from graphmend.server.documents.position_mapping import PositionChange
from graphmend.server.documents.text_buffer import Text

#: Edits kept for findings that are older than the text. Findings older than that are dropped instead of moved.
_MOVES_KEPT = 2000


class Document:
    """One open document. `version` is the client's; `stamp` counts every change here and never goes back."""

    def __init__(self, uri: str, version: int, text: str, path: str = "") -> None:
        self.uri = uri
        self.path = path or uri
        self.version = version
        self.text = Text(text)
        self.stamp = 1
        self._moves: list[PositionChange] = []
        self._edits: list[Edit] = []
        self._forgotten = 1

    @property
    def host(self) -> Document:
        """The document that is analysed: this one, or the notebook around a cell."""
        return self

    @property
    def parts(self) -> tuple[Document, ...]:
        """The documents that the client knows: this one, or a notebook's cells."""
        return (self,)

    def host_line(self, line: int) -> int:
        """A line (from 0) of this document in the host."""
        return line

    def runnable(self, text: str) -> str:
        """What a check runs of a text of this document."""
        return text

    def inside(self, span: Span) -> Span | None:
        """A span of the host in this document; None where it is in another one."""
        return span

    def replace(self, begin: int, end: int, new: str) -> None:
        """Put `new` in place of the text between two offsets."""
        first, old_end = self.text.position(begin), self.text.position(end)
        self.text.replace(begin, end, new)
        new_end = self.text.position(begin + len(new))
        self._moves.append(PositionChange(_from_one(first), _from_one(old_end), _from_one(new_end)))
        self._edits.append(Edit(begin, end, len(new)))
        self.stamp += 1
        if len(self._moves) > _MOVES_KEPT:
            self._forgotten += len(self._moves) - _MOVES_KEPT // 2
            del self._moves[: -_MOVES_KEPT // 2]
            del self._edits[: -_MOVES_KEPT // 2]

    def replace_all(self, text: str) -> None:
        """A whole new text, taken as the edit between what it begins and ends with as before."""
        edit = difference(self.text.text, text)
        self.replace(edit.begin, edit.end, text[edit.begin : edit.begin + edit.length])

    def moves(self, since: int, until: int | None = None) -> list[PositionChange] | None:
        """The edits between two stamps, in order; None where they are no longer known."""
        if since < self._forgotten:
            return None
        return self._moves[since - self._forgotten : None if until is None else until - self._forgotten]

    def edit(self, since: int, until: int) -> Edit | None:
        """The edits between two stamps as one; None where they are no longer known."""
        if since < self._forgotten:
            return None
        edits = self._edits[since - self._forgotten : until - self._forgotten]
        return reduce(Edit.then, edits) if edits else Edit(0, 0, 0)


def _from_one(position: tuple[int, int]) -> tuple[int, int]:
    return position[0] + 1, position[1]


class Documents:
    """The open documents by uri."""

    def __init__(self) -> None:
        self._open: dict[str, Document] = {}

    def __iter__(self) -> Iterator[Document]:
        """The documents that are analysed: a notebook counts as one."""
        return iter([document for document in self._open.values() if document.host is document])

    def get(self, uri: str) -> Document | None:
        return self._open.get(uri)

    def by_path(self, path: str) -> Document | None:
        return next((document for document in self._open.values() if document.path == path), None)

    def open(self, document: Document) -> None:
        self._open[document.uri] = document

    def close(self, uri: str) -> Document | None:
        return self._open.pop(uri, None)

    def is_open(self, document: Document) -> bool:
        """Whether this very document is open still (and not another one under its uri)."""
        return self._open.get(document.uri) is document
