"""Diagnostics as the text that is sent. What is shown as it was the last time is not converted and encoded again, so
that an answer costs what changed and not what stands in the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from graphmend.server.diagnostics import convert_finding
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp import convert
from graphmend.server.lsp.pygls_internals import Json
from graphmend.server.session import Session, ShownFinding

if TYPE_CHECKING:
    from graphmend.workspace.config import Configuration


class Rendered(NamedTuple):
    """The diagnostics of one state of a document, as a JSON array."""

    items: Json

    @property
    def result_id(self) -> str:
        return convert.result_id(self.items)


class _Known(NamedTuple):
    """What was sent for a finding, and what that depends on."""

    shown: ShownFinding
    configuration: Configuration
    lines: tuple[str, ...]
    text: str

    def holds(self, shown: ShownFinding, configuration: Configuration, lines: tuple[str, ...]) -> bool:
        """Whether the same finding would be sent as the same text."""
        return (
            self.configuration is configuration
            and self.lines == lines
            and self.shown.verdict is shown.verdict
            and self.shown.says == shown.says
            and not shown.finding.related  # those are places in other texts
        )


class Renderer:
    """Keeps what was sent last for each document."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._sent: WeakKeyDictionary[Document, dict[int, _Known]] = WeakKeyDictionary()

    async def current(self, document: Document) -> Rendered:
        """The diagnostics of the document's newest version."""
        shown = await self._session.current(document)
        configuration = self._session.configuration(document)
        plain = document.text.text.isascii()  # then a column is a column in every encoding
        before, now = self._sent.get(document, {}), {}
        for one in shown:
            number = id(one.finding)  # `_Known` keeps the finding alive, so nothing else can have it
            known, lines = before.get(number), () if plain else _lines(document, one)
            if known is None or not known.holds(one, configuration, lines):
                text = self._session.client.encode(convert_finding.of(self._session, document, one))
                known = _Known(one, configuration, lines, text)
            now[number] = known
        self._sent[document] = now
        return Rendered(Json(f"[{','.join([known.text for known in now.values()])}]"))


def _lines(document: Document, shown: ShownFinding) -> tuple[str, ...]:
    """The lines that the finding's columns are counted in."""
    span = shown.finding.span
    return document.text.line(span.line - 1), document.text.line(span.end_line - 1)
