"""All that reaches into private parts of pygls, in one place: what it needs of them is in `METHODS` and `ATTRIBUTES`.

Tried with pygls 2.1.0 and 2.1.1; a test asks the installed release for each of them. Everything else of the server goes
through pygls' public interface.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from concurrent.futures import Future
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcInternalError
from pygls.protocol import LanguageServerProtocol
from pygls.protocol.json_rpc import JsonRPCResponseMessage

#: members of `LanguageServerProtocol` that are called or replaced here
METHODS = ("_register_builtin_features", "_send_data")
#: attributes of its instances that are read here
ATTRIBUTES = ("_converter", "_result_types", "_request_futures", "_server", "_shutdown", "_workspace")

pygls_log = logging.getLogger("pygls.protocol.json_rpc")


class Json(str):
    """A result, or the params of a notification, that is JSON already."""

    __slots__ = ()


class PyglsProtocol(LanguageServerProtocol):
    """pygls' side of one conversation, with what it keeps to itself under names of our own."""

    #: Methods of pygls' own features that are switched off.
    without: tuple[str, ...] = ()

    def _register_builtin_features(self) -> None:
        super()._register_builtin_features()  # type: ignore[no-untyped-call]
        for method in self.without:
            self.fm.builtin_features.pop(method, None)

    @property
    def is_initialized(self) -> bool:
        """Whether `initialize` came."""
        return self._workspace is not None

    @property
    def is_shut_down(self) -> bool:
        """Whether `shutdown` came."""
        return bool(self._shutdown)

    def shut_down(self) -> None:
        """As pygls 2.1 does it, but over a copy: a request that is cancelled leaves the dictionary."""
        current = self.msg_id
        for number, future in self._pending():
            if number != current and not future.done():
                future.cancel()
        self._shutdown = True

    def _pending(self) -> Iterable[tuple[Any, Future[Any]]]:
        return list(self._request_futures.items())

    def encode(self, value: Any) -> str:
        """A value of the protocol's types as JSON."""
        return json.dumps(self._converter.unstructure(value))

    def structure(self, data: dict[str, Any], kind: type[Any]) -> Any:
        """A message's data as one of the protocol's types."""
        return self._converter.structure(data, kind)

    def structure_answer(self, data: dict[str, Any]) -> Any:
        """The client's answer to one of our requests."""
        if "error" in data:
            return self.structure(data, types.ResponseErrorMessage)
        number = data.get("id")
        kind = self._result_types.pop(number, None) if isinstance(number, str | int) else None
        if kind is None:
            return JsonRPCResponseMessage(number, self.VERSION, data.get("result"))  # type: ignore[arg-type]
        return self.structure(data, kind)

    def write_json(self, message: str) -> None:
        """Write what is JSON already. What goes wrong is handled as in pygls 2.1 and goes to its log: ours is
        written to the client."""
        body = message.encode()
        if self.writer is None:
            pygls_log.error("Unable to send data, no available transport!")
            return
        try:
            self.writer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        except BrokenPipeError:
            pygls_log.exception("Error sending data. BrokenPipeError")
            raise
        except Exception as error:
            pygls_log.exception("Error sending data")
            self._server._report_server_error(error, JsonRpcInternalError)

    def _send_data(self, data: Any) -> None:
        """As pygls 2.1 has it; what holds `Json` is put together here, without a look into it."""
        name = "params" if isinstance(getattr(data, "params", None), Json) else "result"
        value = getattr(data, name, None)
        if not isinstance(value, Json):
            super()._send_data(data)
            return
        head = {"jsonrpc": self.VERSION, "id": data.id} if name == "result" else {"jsonrpc": self.VERSION}
        if name == "params":
            head["method"] = data.method
        self.write_json(f'{json.dumps(head)[:-1]}, "{name}": {value}}}')
