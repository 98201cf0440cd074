"""A model server whose script is chosen by the model's name; it keeps every request for assertions."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Script = Callable[["Handler", dict[str, Any], int], None]
"""Answers the n-th request (from 0), given as JSON, to one model."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.scripts: dict[str, Script] = {}
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = sum(r["model"] == body["model"] for r in self.server.requests)
        self.server.requests.append(body)
        self.server.headers.append(dict(self.headers))
        with contextlib.suppress(OSError):  # the client may have gone
            self.server.scripts[body["model"]](self, body, number)

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def plain(self, status: int, text: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def completion(self, text: str, finish: str = "stop", **message: Any) -> None:
        """A whole answer, without a stream."""
        choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
        usage = {"prompt_tokens": 7, "completion_tokens": 5}
        self.plain(200, json.dumps({"choices": [choice], "usage": usage}).encode())

    def stream(self, text: str, finish: str | None = "stop", pause: float = 0.0, done: bool = True) -> None:
        """The answer as server-sent events, some characters each."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for start in range(0, len(text), 40):
            self.event({"choices": [{"delta": {"content": text[start : start + 40]}}]})
            time.sleep(pause)
        if finish is not None:
            self.event({"choices": [{"delta": {}, "finish_reason": finish}]})
        if done:
            self.wfile.write(b"data: [DONE]\n\n")

    def event(self, data: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()


@contextmanager
def serving() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(*texts: str) -> Script:
    """One text after the other; the last one again and again."""

    def script(handler: Handler, body: dict[str, Any], number: int) -> None:
        handler.stream(texts[min(number, len(texts) - 1)])

    return script
