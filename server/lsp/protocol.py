"""Messages in: parsed, checked against the state of the conversation, handed to their handlers.

pygls handles a well-made message. Here it is decided what happens to the others (each request gets exactly one answer,
whatever is wrong with it), and pygls' own text documents are switched off: `documents/open_documents.py` keeps ours.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from cattrs.errors import BaseValidationError
from lsprotocol import types
from pygls.protocol import lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification, JsonRPCRequestMessage

from graphmend.server.lsp.pygls_internals import PyglsProtocol

log = logging.getLogger(__name__)

_OURS = (
    types.TEXT_DOCUMENT_DID_OPEN,
    types.TEXT_DOCUMENT_DID_CHANGE,
    types.TEXT_DOCUMENT_DID_CLOSE,
    types.NOTEBOOK_DOCUMENT_DID_OPEN,
    types.NOTEBOOK_DOCUMENT_DID_CHANGE,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE,
)


class Protocol(PyglsProtocol):
    """The server's side of one conversation."""

    #: Called once, with the exit status, when the conversation is over.
    ended: Callable[[int], None]

    without = _OURS

    def receive(self, body: bytes) -> None:
        """One message as it came."""
        try:
            data = json.loads(body)
        except (ValueError, RecursionError) as error:
            self._refuse(None, types.ErrorCodes.ParseError, f"not JSON: {error}")
            return
        if not isinstance(data, dict):
            self._refuse(None, types.ErrorCodes.InvalidRequest, "a message should be an object")
            return
        method, number = data.get("method"), data.get("id")
        if method is not None and not self._acceptable(method, number, "id" in data):
            return
        try:
            message = self._structure(data)
        except (BaseValidationError, TypeError, ValueError, KeyError, AttributeError) as error:
            asked = None if method is None else number  # a response is never answered
            self._refuse(asked, types.ErrorCodes.InvalidParams, f"malformed {method or 'response'}: {_first(error)}")
            return
        self.handle_message(message)

    def connection_lost(self) -> None:
        """The client is gone without saying `exit`."""
        self.ended(0 if self.is_shut_down else 1)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *_: Any) -> None:  # type: ignore[override]
        self.shut_down()

    @lsp_method(types.EXIT)
    def lsp_exit(self, *_: Any) -> None:  # type: ignore[override]
        self.ended(0 if self.is_shut_down else 1)

    def _acceptable(self, method: Any, number: Any, is_request: bool) -> bool:
        """Whether a message of this method may come now; answers it if not."""
        code, reason = types.ErrorCodes.InvalidRequest, None
        started = self.is_initialized
        if not isinstance(method, str):
            reason = "a method should be a string"
        elif is_request and (isinstance(number, bool) or not isinstance(number, str | int)):
            number, reason = None, "an id should be a string or a number"
        elif method == types.EXIT:
            return True
        elif is_request and _is_notification(method):
            reason = f"{method} is a notification and takes no id"
        elif not started and method != types.INITIALIZE:
            if not is_request:
                return False  # the protocol says: dropped without a word
            code, reason = types.ErrorCodes.ServerNotInitialized, "the server is not initialized"
        elif started and method == types.INITIALIZE:
            reason = "the server is initialized already"
        elif self.is_shut_down:
            if not is_request:
                return False
            reason = "the server is shutting down"
        elif not is_request and method.startswith("$/") and self.get_message_type(method) is None:
            return False
        if reason is not None:
            self._refuse(number, code, reason)
        return reason is None

    def _structure(self, data: dict[str, Any]) -> Any:
        """The message as its type. Methods that the protocol does not know keep their params as they came."""
        method, number = data.get("method"), data.get("id")
        data = {"jsonrpc": self.VERSION, **data}
        if method is None:
            return self.structure_answer(data)
        known = self.get_message_type(method)
        if known is not None:
            return self.structure(data, known)
        params = data.get("params")
        if "id" in data:
            return JsonRPCRequestMessage(number, method, self.VERSION, params)  # type: ignore[arg-type]
        return JsonRPCNotification(method, self.VERSION, params)

    def _refuse(self, number: Any, code: types.ErrorCodes, reason: str) -> None:
        log.warning("refused a message: %s", reason)
        if number is not None or code in (types.ErrorCodes.ParseError, types.ErrorCodes.InvalidRequest):
            error = {"code": code.value, "message": reason}
            # the id is null where it is unknown
            self.write_json(json.dumps({"jsonrpc": self.VERSION, "id": number, "error": error}))


def _is_notification(method: str) -> bool:
    """Whether the protocol knows a method as one that is never answered."""
    known = types.METHOD_TO_TYPES.get(method)
    return known is not None and known[1] is None


def _first(error: BaseException) -> str:
    """The innermost complaint of a group of them, in one line."""
    while isinstance(error, BaseValidationError) and error.exceptions:
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
