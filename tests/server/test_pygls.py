"""The private parts of pygls that the server relies on are there in the release that is installed."""

from __future__ import annotations

import json

from lsprotocol import types
from pygls.protocol import LanguageServerProtocol

from graphmend.server.app import create
from graphmend.server.lsp.pygls_internals import ATTRIBUTES, METHODS, Json


class Wire:
    def __init__(self) -> None:
        self.bytes = b""

    def write(self, data: bytes) -> None:
        self.bytes += data

    def close(self) -> None:
        pass


def test_pygls_has_what_is_relied_on() -> None:
    server, _ = create()
    assert not [name for name in METHODS if not callable(getattr(LanguageServerProtocol, name, None))]
    assert not [name for name in ATTRIBUTES if not hasattr(server.protocol, name)]


def test_pygls_sends_through_the_method_that_is_replaced() -> None:
    """A notification whose params are JSON already goes out as it is."""
    server, _ = create()
    server.protocol.set_writer(wire := Wire())
    server.protocol.notify(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, Json('{"uri": "file:///a", "diagnostics": []}'))
    head, _, body = wire.bytes.partition(b"\r\n\r\n")
    assert head == b"Content-Length: %d" % len(body)
    assert json.loads(body)["params"] == {"uri": "file:///a", "diagnostics": []}
