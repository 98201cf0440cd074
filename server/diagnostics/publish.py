"""Pushed diagnostics, for clients that do not pull: one task for each document, which ends with its newest version."""

from __future__ import annotations

import asyncio

from graphmend.server.diagnostics.rendering import Rendered, Renderer
from graphmend.server.documents.open_documents import Document
from graphmend.server.lsp.pygls_internals import Json
from graphmend.server.session import Session

NOTHING = Json("[]")


class Publisher:
    """Sends a document's diagnostics as often as it changes."""

    def __init__(self, session: Session, renderer: Renderer) -> None:
        self._session = session
        self._renderer = renderer
        self._tasks: dict[Document, asyncio.Task[None]] = {}

    def publish(self, document: Document) -> None:
        """Sends the diagnostics of the document's newest version as soon as they are known."""
        if self._session.client.capabilities.pull_diagnostics:
            return
        host = document.host
        if host not in self._tasks:
            self._tasks[host] = self._session.spawn(self._publish(host))

    def publish_again(self, document: Document) -> None:
        """What is shown for the document changed without an edit."""
        self.publish(document)
        self._session.client.refresh()

    def publish_all(self) -> None:
        """Something other than a text changed: all that is shown is made again, whoever shows it."""
        for document in self._session.documents:
            self.publish(document)
        self._session.client.refresh()

    def withdraw(self, document: Document, left: Json = NOTHING) -> None:
        """A closed document has no diagnostics but those of its file, where such are shown."""
        if not self._session.client.capabilities.pull_diagnostics:
            self._session.client.publish(document.uri, None, left)

    async def _publish(self, host: Document) -> None:
        found: list[tuple[Document, Rendered]] = []
        try:
            stamp = -1
            while stamp != host.stamp:  # an edit came while the diagnostics were made: those are stale
                stamp = host.stamp
                found = [(part, await self._renderer.current(part)) for part in host.parts]
        finally:  # here, not in a callback that runs later: an edit in between would find this task and rely on it
            del self._tasks[host]
        for part, rendered in found:
            if self._session.documents.is_open(part):
                self._session.client.publish(part.uri, part.version, rendered.items)
