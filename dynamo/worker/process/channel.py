"""Messages: one JSON object a line, over a descriptor that nobody else knows.

Text is ASCII, so a line never splits a character.
"""

from __future__ import annotations

import json
import os
from typing import Any

Message = dict[str, Any]


class LineBuffer:
    """Collects what was read until whole lines are there."""

    def __init__(self) -> None:
        self._parts = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        self._parts += data
        *lines, rest = self._parts.split(b"\n")
        self._parts = bytearray(rest)
        return [json.loads(line) for line in lines if line.strip()]


def send(descriptor: int, message: Message) -> None:
    """Writes one message whole; a pipe takes large ones in several steps."""
    data = memoryview(json.dumps(message, default=str).encode("ascii") + b"\n")
    while data:
        data = data[os.write(descriptor, data) :]


def receive(descriptor: int) -> Message | None:
    """The next message of a blocking descriptor; None at its end."""
    buffer = LineBuffer()
    while True:
        data = os.read(descriptor, 1 << 16)
        if not data:
            return None
        messages = buffer.feed(data)
        if messages:
            return messages[0]
