"""One question over HTTP to an OpenAI-compatible endpoint: Ollama, vLLM, llama.cpp, or a hosted one.

Promises that libraries do not give together: exactly the host that the user named gets the text (no redirect is
followed, no proxy for this machine itself), an error carries host and status and never a body (servers repeat keys),
bytes and seconds are bounded, and `cancel` closes the connection.
"""

from __future__ import annotations

import contextlib
import http.client
import ipaddress
import json
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.request import getproxies, proxy_bypass

from graphmend.model.meaning import Message, Schema

MOST_BYTES = 200_000
"""Of one answer as it comes over the wire."""
WAITS = (1.0, 4.0)
"""Seconds before the same request is sent again after a 429 or 503."""
_SHORTEST_KEY = 8
"""What is shorter is no secret: `EMPTY` and `ollama` stand where a server wants no key, and may be in an answer."""


class Unanswered(Exception):
    """No answer, for a reason that asking again does not change; the message is one line with the host."""


class Declined(Unanswered):
    """The model declines to answer."""


@dataclass
class Usage:
    """What was spent: requests sent, tokens as the server counts them."""

    requests: int = 0
    prompt_tokens: int = 0
    answer_tokens: int = 0


@dataclass
class Endpoint:
    """Where a model answers. `url` is the base, such as `http://127.0.0.1:11434/v1`; `seconds` bounds one answer."""

    url: str
    name: str
    key: str | None = field(default=None, repr=False)
    seconds: float = 120.0
    most_tokens: int = 4096
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        parts = urllib.parse.urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Unanswered(f"{_shown(self.url)} is no http or https address")
        if parts.username or parts.password:
            raise Unanswered(f"{_shown(self.url)} holds a password; keys are read from a variable or a file")
        if parts.query or parts.fragment:
            raise Unanswered(f"{_shown(self.url)} has a query; name the model apart from the address")
        self.host = parts.hostname
        self.is_local = is_loopback(parts.hostname)
        if parts.scheme == "http" and not self.is_local:
            raise Unanswered(f"{self.host} is not this machine, and http would send the source unencrypted; use https")
        self._socket: socket.socket | None = None
        self._cancelled = threading.Event()

    @property
    def address(self) -> str:
        """Where the request goes."""
        path = self.url.rstrip("/")
        return path if path.endswith("/chat/completions") else f"{path}/chat/completions"

    def complete(self, messages: Sequence[Message], schema: Schema) -> str:
        """The text of the answer; raises `Unanswered`."""
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.text} for m in messages],
            **self._optional(schema),
        }
        waits = list(WAITS)
        optional = list(self._optional(schema))
        until = time.monotonic() + self.seconds
        while True:
            try:
                return self._once(body, until)
            except _Status as error:
                if error.status in (429, 503) and waits and time.monotonic() + waits[0] < until:
                    self._cancelled.wait(waits.pop(0))
                elif error.status in (400, 422) and optional:
                    # servers differ in which of these they know, and name the one in a body that nobody may read
                    body.pop(optional.pop(0))
                else:
                    raise Unanswered(f"{self.host} answers {error.status}") from None

    @property
    def requests(self) -> int:
        return self.usage.requests

    def options(self, schema: Schema) -> tuple[str, ...]:
        """What an answer depends on besides the address and the messages."""
        return self.name, json.dumps(self._optional(schema), sort_keys=True)

    def _optional(self, schema: Schema) -> dict[str, Any]:
        """What servers may not know; the first is left out first."""
        return {
            "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
            "temperature": 0,
            "max_tokens": self.most_tokens,
            "stream": True,
        }

    def cancel(self) -> None:
        """Ends a question that is under way, from any thread."""
        self._cancelled.set()
        self._hang_up()

    def _hang_up(self) -> None:
        sock = self._socket
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _once(self, body: dict[str, Any], until: float) -> str:
        """One request. A timer hangs up when the time is over: a socket's own timeout begins anew with each byte."""
        if self._cancelled.is_set():
            raise Unanswered("cancelled")
        self.usage.requests += 1
        left = max(until - time.monotonic(), 0.1)
        connection = self._connection(left)
        timer = threading.Timer(left, self._hang_up)
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
            self._socket = connection.sock
            connection.request("POST", self._path, json.dumps(body).encode(), self._headers())
            with connection.getresponse() as response:
                if response.status != 200:
                    raise _Status(response.status)
                return self._read(response, until)
        except (OSError, HTTPException, ValueError) as error:
            raise Unanswered(self._reason(error, until)) from None
        finally:
            timer.cancel()
            self._socket = None
            connection.close()

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        """To the host itself, or through the proxy that the environment names for it; this machine needs none."""
        parts = urllib.parse.urlsplit(self.address)
        if parts.scheme == "http":
            return http.client.HTTPConnection(self.host, parts.port, timeout=seconds)
        context = ssl.create_default_context()
        proxy = None if self.is_local or proxy_bypass(self.host) else getproxies().get("https")
        if proxy is None:
            return http.client.HTTPSConnection(self.host, parts.port, timeout=seconds, context=context)
        through = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        tunnel = http.client.HTTPSConnection(through.hostname or "", through.port, timeout=seconds, context=context)
        tunnel.set_tunnel(self.host, parts.port or 443)
        return tunnel

    @property
    def _path(self) -> str:
        return urllib.parse.urlsplit(self.address).path

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream, application/json"}
        return headers if self.key is None else {**headers, "Authorization": f"Bearer {self.key}"}

    def _reason(self, error: Exception, until: float) -> str:
        if self._cancelled.is_set():
            return "cancelled"
        if time.monotonic() >= until:
            return f"{self.host} did not end its answer within {self.seconds:g} s"
        return f"{self.host}: {_reason(error)}"

    def _read(self, response: Any, until: float) -> str:
        kind = response.headers.get_content_type()
        if kind == "application/json":
            return self._whole(b"".join(self._bounded(response, until)))
        if kind != "text/event-stream":
            raise Unanswered(f"{self.host} answers with neither JSON nor a stream of events")
        return self._streamed(response, until)

    def _bounded(self, response: Any, until: float) -> Iterator[bytes]:
        """The lines of a response, as long as bytes and seconds last."""
        read = 0
        while line := response.readline(MOST_BYTES + 1):
            read += len(line)
            if read > MOST_BYTES:
                raise Unanswered(f"{self.host} answers with more than {MOST_BYTES:,} bytes")
            if self._cancelled.is_set():
                raise Unanswered("cancelled")
            yield line
        if time.monotonic() >= until:
            raise Unanswered(f"{self.host} did not end its answer within {self.seconds:g} s")

    def _whole(self, text: bytes) -> str:
        answer = _parsed(text, self.host)
        self._count(answer)
        choice = _choice(answer, self.host)
        message = choice.get("message")
        return self._ended(choice.get("finish_reason"), message if isinstance(message, dict) else {})

    def _streamed(self, response: Any, until: float) -> str:
        parts: dict[str, str] = {"content": "", "refusal": ""}
        finish: Any = None
        for line in self._bounded(response, until):
            text = line.strip()
            if not text.startswith(b"data:"):
                continue
            data = text[5:].strip()
            if data == b"[DONE]":
                break
            event = _parsed(data, self.host)
            self._count(event)
            if not event.get("choices"):
                continue  # the last one may hold the usage alone
            choice = _choice(event, self.host)
            delta = choice.get("delta")
            for name in parts:
                piece = delta.get(name) if isinstance(delta, dict) else None
                parts[name] += piece if isinstance(piece, str) else ""
            finish = choice.get("finish_reason") or finish
        if finish is None:
            raise Unanswered(f"{self.host} broke its answer off")
        return self._ended(finish, parts)

    def _ended(self, finish: Any, message: dict[str, Any]) -> str:
        if message.get("refusal") or finish == "content_filter":
            raise Declined("the model declines to answer")
        if finish == "length":
            raise Unanswered(f"the answer was cut off after {self.most_tokens:,} tokens")
        content = message.get("content")
        if not isinstance(content, str):
            return ""
        if self.key is not None and len(self.key) >= _SHORTEST_KEY and self.key in content:
            raise Unanswered(f"{self.host} repeats the key in its answer, which is not used")  # it would be kept, shown
        return content

    def _count(self, answer: dict[str, Any]) -> None:
        usage = answer.get("usage")
        if isinstance(usage, dict):
            prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
            self.usage.prompt_tokens += prompt if isinstance(prompt, int) else 0
            self.usage.answer_tokens += completion if isinstance(completion, int) else 0


class _Status(Exception):
    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False


def _parsed(text: bytes, host: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Unanswered(f"{host} answers with broken JSON") from None
    if not isinstance(found, dict):
        raise Unanswered(f"{host} answers with JSON that is no completion")
    return found


def _choice(answer: dict[str, Any], host: str) -> dict[str, Any]:
    choices = answer.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise Unanswered(f"{host} answers with JSON that is no completion")
    return choices[0]


def _reason(error: Exception) -> str:
    """What happened, in words that hold nothing of the server's."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or 'certificate'})"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, socket.gaierror):
        return "no such host"
    return f"the connection failed ({type(error).__name__})"


def _shown(url: str) -> str:
    """An address without what may be a password."""
    return url.rpartition("@")[2].partition("?")[0][:80]
