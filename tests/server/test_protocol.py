"""Messages that are wrong, late or out of order: each request has one answer, and the server stays."""

from __future__ import annotations

import json
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from .servers import Nursery

URI = "file:///nowhere/f.py"
BRANCH = "import torch\n\n\n@torch.compile\ndef f(x):\n    return x + 1 if x.sum() > 0 else x\n"


class Wire:
    """The bytes of a conversation."""

    def __init__(self, source: IO[bytes], sink: IO[bytes]) -> None:
        self._source, self.sink = source, sink
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        length = 0
        while line := self._source.readline():
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
            elif not line.strip():
                self._messages.put(json.loads(self._source.read(length)))

    def send(self, data: bytes) -> None:
        self.sink.write(data)
        self.sink.flush()

    def body(self, body: bytes) -> None:
        self.send(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def initialize(self) -> None:
        can = {"textDocument": {"diagnostic": {}}, "window": {}}
        self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": can})
        self.notify("initialized", {})

    def message(self, **message: Any) -> None:
        self.body(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def notify(self, method: str, params: Any = None) -> None:
        self.message(method=method, params=params)

    def request(self, method: str, params: Any = None) -> int:
        self._number += 1
        self.message(id=self._number, method=method, params=params)
        return self._number

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + 20
        while True:
            message = self._messages.get(timeout=deadline - time.monotonic())
            if wanted(message):
                return message

    def answer(self, number: int | None) -> dict[str, Any]:
        return self.until(lambda m: "method" not in m and m["id"] == number)

    def ask(self, method: str, params: Any = None) -> Any:
        return self.answer(self.request(method, params))

    def open(self, text: str = BRANCH, version: int = 1) -> None:
        document = {"uri": URI, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def change(self, version: int, *changes: dict[str, Any], uri: str = URI) -> None:
        identifier = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": list(changes)})

    def pull(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.ask("textDocument/diagnostic", {"textDocument": {"uri": URI}})["result"][
            "items"
        ]
        return items

    def logged(self, part: str) -> str:
        message = self.until(lambda m: m.get("method") == "window/logMessage" and part in m["params"]["message"])
        return str(message["params"]["message"])


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A server on its standard input and output."""
    command = [sys.executable, "-m", "graphmend", "server", "--stdio"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.fixture
def stdio(process: subprocess.Popen[bytes]) -> Wire:
    """The bytes of a conversation with it, nothing of which was said."""
    assert process.stdout is not None
    assert process.stdin is not None
    return Wire(process.stdout, process.stdin)


@pytest.fixture
def raw(nursery: Nursery | None, request: pytest.FixtureRequest) -> Iterator[Wire]:
    """The bytes of a conversation of which nothing was said."""
    if nursery is None:
        yield request.getfixturevalue("stdio")
        return
    server = nursery.server()
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        yield Wire(connection.makefile("rb"), connection.makefile("wb"))
        server.kill()
        server.wait()


@pytest.fixture
def wire(raw: Wire) -> Wire:
    raw.initialize()
    return raw


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(b'{"jsonrpc": "2.0", ', -32700, id="half-a-message"),
        pytest.param(b"\xff\xfe\x00", -32700, id="not-utf-8"),
        pytest.param(b"[" * 100_000, -32700, id="nested-too-deeply"),
        pytest.param(b"[]", -32600, id="a-batch"),
        pytest.param(b'"hello"', -32600, id="a-string"),
        pytest.param(b'{"jsonrpc": "2.0", "id": true, "method": "shutdown"}', -32600, id="an-id-of-the-wrong-type"),
        pytest.param(b'{"jsonrpc": "2.0", "id": null, "method": 7}', -32600, id="a-method-of-the-wrong-type"),
    ],
)
def test_a_message_that_is_none_is_answered_with_what_is_wrong(wire: Wire, body: bytes, code: int) -> None:
    wire.body(body)
    assert wire.answer(None)["error"]["code"] == code
    wire.open()
    assert len(wire.pull()) == 1


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("textDocument/hover", None),
        ("textDocument/hover", {"textDocument": {"uri": URI}}),
        ("textDocument/hover", {"textDocument": {"uri": URI}, "position": {"line": "one", "character": []}}),
        ("textDocument/codeAction", {"textDocument": {}}),
        ("workspace/executeCommand", {"command": "graphmend.verify"}),
        ("workspace/executeCommand", {"command": "graphmend.verify", "arguments": [7]}),
        ("workspace/executeCommand", {"command": "graphmend.verify", "arguments": [URI, {"line": "x"}]}),
        ("workspace/executeCommand", {"command": "no.such.command"}),
    ],
)
def test_malformed_params_are_refused(wire: Wire, method: str, params: Any) -> None:
    wire.open()
    assert wire.ask(method, params)["error"]["code"] == -32602
    assert len(wire.pull()) == 1


@pytest.mark.parametrize("method", ["textDocument/hover", "textDocument/codeAction", "textDocument/codeLens"])
def test_places_in_documents_that_are_not_open_hold_nothing(wire: Wire, method: str) -> None:
    place = {"line": 4, "character": 0}
    params = {
        "textDocument": {"uri": URI},
        "position": place,
        "range": {"start": place, "end": place},
        "context": {"diagnostics": []},
    }
    assert not wire.ask(method, params)["result"]


def test_an_unknown_request_is_refused_and_an_unknown_notification_dropped(wire: Wire) -> None:
    wire.notify("no/such/notification", {"a": 1})
    wire.notify("$/noSuchNotification")
    assert wire.ask("no/such/request", {"a": 1})["error"]["code"] == -32601


def test_each_request_is_answered_and_no_response_is(wire: Wire) -> None:
    wire.message(id={}, error=7)
    wire.message(id=70, method="textDocument/didOpen", params={})
    wire.message(id=71, method="initialized", params={})
    answers = [wire.until(lambda m: "method" not in m) for _ in range(2)]
    assert [(m["id"], m["error"]["code"]) for m in answers] == [(70, -32600), (71, -32600)]
    wire.open()
    assert len(wire.pull()) == 1


def test_a_change_of_a_document_that_is_not_open_is_dropped(wire: Wire) -> None:
    wire.change(2, {"text": "x"})
    assert URI in wire.logged("not open")
    wire.open()
    assert len(wire.pull()) == 1


def test_versions_that_go_back_are_taken_as_they_come(wire: Wire) -> None:
    wire.open(version=10)
    wire.change(3, {"text": BRANCH.replace("x.sum() > 0", "True")})
    assert wire.pull() == []
    wire.change(3, {"text": BRANCH})
    assert len(wire.pull()) == 1


def test_lines_that_are_no_header_are_skipped(wire: Wire) -> None:
    wire.send(b"hello\r\nContent-Type: x\r\n")
    wire.open()
    assert len(wire.pull()) == 1


def test_requests_wait_for_initialize(raw: Wire) -> None:
    raw.open()
    assert raw.ask("textDocument/hover", {})["error"]["code"] == -32002
    raw.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    assert raw.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["error"]["code"] == -32600


def test_after_shutdown_nothing_but_exit_is_done(stdio: Wire, process: subprocess.Popen[bytes]) -> None:
    stdio.initialize()
    assert stdio.ask("shutdown")["result"] is None
    assert stdio.ask("textDocument/hover", {})["error"]["code"] == -32600
    stdio.notify("exit")
    assert process.wait(5) == 0


def test_exit_without_shutdown_and_a_lost_client_are_failures(stdio: Wire, process: subprocess.Popen[bytes]) -> None:
    stdio.sink.close()
    assert process.wait(60) == 1


def test_a_request_is_cancelled(wire: Wire) -> None:
    wire.open("import torch\n" + "def f(x):\n    return x\n" * 20_000)
    number = wire.request("textDocument/diagnostic", {"textDocument": {"uri": URI}})
    wire.notify("$/cancelRequest", {"id": number})
    assert wire.answer(number)["error"]["code"] == -32800


def test_a_text_that_is_too_long_is_left_alone_with_a_note(wire: Wire) -> None:
    wire.open("import torch\n" + "#" * 50_000_000)
    number = wire.request("textDocument/diagnostic", {"textDocument": {"uri": URI}})
    assert "not analysed" in wire.logged("characters")
    assert wire.answer(number)["result"]["items"] == []
    wire.change(2, {"text": BRANCH})
    assert len(wire.pull()) == 1


def test_one_client_is_served_on_a_socket(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "graphmend", "server", "--tcp", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        host, _, port = process.stderr.readline().split()[-1].rpartition(":")
        with socket.create_connection((host, int(port)), 10) as connection:
            stream = connection.makefile("rwb")
            for number, method in enumerate(("initialize", "shutdown", "exit")):
                message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
                if method == "initialize":
                    message["params"] = {"processId": None, "rootUri": None, "capabilities": {}}
                if method != "exit":
                    message["id"] = number
                body = json.dumps(message).encode()
                stream.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                stream.flush()
            assert process.wait(10) == 0
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
