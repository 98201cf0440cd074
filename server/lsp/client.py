"""What the server says to the client, each thing only where the client declared that it understands it."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from graphmend.server.lsp.capabilities import Capabilities
from graphmend.server.lsp.pygls_internals import Json

if TYPE_CHECKING:
    from graphmend.server.lsp.language_server import Server

log = logging.getLogger(__name__)


class Client:
    """The other side of the conversation."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self.capabilities = Capabilities()

    @property
    def encoding(self) -> Any:
        """The unit of columns that was agreed on."""
        return self._server.workspace.position_encoding

    def encode(self, value: Any) -> Json:
        """A value of the protocol's types, or a sequence of them, as the text that is sent."""
        return Json(self._server.protocol.encode(value))

    def publish(self, uri: str, version: int | None, diagnostics: Json) -> None:
        """Diagnostics of a document; of a version, where there is one and the client understands that."""
        parts = {"uri": json.dumps(uri), "diagnostics": diagnostics}
        if version is not None and self.capabilities.diagnostic_versions:
            parts["version"] = str(version)
        params = ", ".join(f'"{name}": {value}' for name, value in parts.items())
        self._server.protocol.notify(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, Json(f"{{{params}}}"))

    def refresh(self) -> None:
        """Asks the client to pull again what changed without its doing."""
        if self.capabilities.pull_diagnostics:
            _quietly(self._server.workspace_diagnostic_refresh(None))
        if self.capabilities.refresh_lenses:
            _quietly(self._server.workspace_code_lens_refresh(None))

    async def apply(self, label: str, edit: types.WorkspaceEdit) -> bool:
        """Whether the client made the edit."""
        if not self.capabilities.apply_edit:
            log.warning("the client takes no edits from the server: %s", label)
            return False
        answer = await self._server.workspace_apply_edit_async(types.ApplyWorkspaceEditParams(edit=edit, label=label))
        if not answer.applied:
            log.warning("the client did not apply %r: %s", label, answer.failure_reason or "no reason given")
        return bool(answer.applied)

    def show(self, kind: types.MessageType, message: str) -> None:
        self._server.window_show_message(types.ShowMessageParams(type=kind, message=message))

    async def choose(self, message: str, *answers: str) -> str | None:
        """The answer that the user picks; None where the question is dismissed."""
        items = [types.MessageActionItem(answer) for answer in answers]
        params = types.ShowMessageRequestParams(types.MessageType.Info, message, items)
        picked = await self._server.window_show_message_request_async(params)
        return None if picked is None else picked.title

    async def open(self, uri: str) -> bool:
        """Whether the client opened a document for the user to read."""
        if not self.capabilities.show_document:
            return False
        params = types.ShowDocumentParams(uri, take_focus=True)
        return bool((await self._server.window_show_document_async(params)).success)

    def tell(self, method: str, params: dict[str, Any]) -> None:
        """A notification of our own; clients that do not know it drop it."""
        self._server.protocol.notify(method, params)

    async def configuration(self, scopes: Sequence[str | None]) -> Sequence[Any]:
        """The `graphmend` section for each scope."""
        items = [types.ConfigurationItem(scope_uri=scope, section="graphmend") for scope in scopes]
        return await self._server.workspace_configuration_async(types.ConfigurationParams(items=items))

    def register(self, *registrations: types.Registration) -> None:
        _quietly(self._server.client_register_capability(types.RegistrationParams(registrations=registrations)))


def _quietly(answer: Future[Any]) -> None:
    """An answer that nobody waits for; a refusal is worth a line in the log, not an exception."""

    def done(future: Future[Any]) -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            log.debug("the client refused a request: %s", error)

    answer.add_done_callback(done)


class ClientHandler(logging.Handler):
    """Log records as `window/logMessage`."""

    _LEVELS = (
        (logging.ERROR, types.MessageType.Error),
        (logging.WARNING, types.MessageType.Warning),
        (logging.INFO, types.MessageType.Info),
        (0, types.MessageType.Log),
    )

    def __init__(self, server: Server, call: Callable[..., object]) -> None:
        super().__init__()
        self._server = server
        self._call = call

    def emit(self, record: logging.LogRecord) -> None:
        kind = next(kind for level, kind in self._LEVELS if record.levelno >= level)
        try:
            params = types.LogMessageParams(type=kind, message=self.format(record))
            self._call(self._server.window_log_message, params)  # any thread may log, only the loop's may write
        except RuntimeError:  # the loop is closed
            return
