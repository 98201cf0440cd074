"""Messages on byte streams: the base protocol's framing, and the thread that reads.

One daemon thread reads whole messages and hands each to the event loop, so a message costs one hop between threads.
Knows bytes only: no JSON, no protocol.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO

log = logging.getLogger(__name__)

_CONTENT_LENGTH = re.compile(rb"content-length\s*:\s*(\d+)\s*$", re.IGNORECASE)

#: A longer message is read and thrown away.
LONGEST = 512 * 1024 * 1024
_CHUNK = 1024 * 1024


def read_messages(stream: BinaryIO) -> Iterator[bytes]:
    """The body of each message until the stream ends. Lines that are no header are skipped."""
    length: int | None = None
    while line := stream.readline():
        if found := _CONTENT_LENGTH.match(line):
            length = int(found[1])
        elif not line.strip() and length is not None:
            body = _read_body(stream, length)
            if body is None:
                return
            if length <= LONGEST:
                yield body
            length = None
        elif length is None and line.strip() and b":" not in line:
            log.warning("skipped a line that is no message header: %r", line[:80])


def _read_body(stream: BinaryIO, length: int) -> bytes | None:
    """`length` bytes; None where the stream ends before. Bytes beyond `LONGEST` are not kept."""
    if length <= _CHUNK:
        body = stream.read(length)
        return body if len(body) == length else None
    if length > LONGEST:
        log.error("skipped a message of %d bytes", length)
    chunks, left = [], length
    while left:
        chunk = stream.read(min(left, _CHUNK))
        if not chunk:
            return None
        left -= len(chunk)
        if length <= LONGEST:
            chunks.append(chunk)
    return b"".join(chunks)


class StreamWriter:
    """What pygls writes to. Only the event loop's thread writes."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, data: bytes) -> None:
        self._stream.write(data)
        self._stream.flush()

    def close(self) -> None:
        self._stream.close()


def start_reader(stream: BinaryIO, receive: Callable[[bytes], None], closed: Callable[[], None]) -> None:
    """Calls `receive` on the running loop for each message of `stream`, and `closed` when it ends."""
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            for body in read_messages(stream):
                loop.call_soon_threadsafe(receive, body)
            loop.call_soon_threadsafe(closed)
        except (OSError, ValueError) as error:  # ValueError: the stream was closed under the reader
            log.warning("reading stopped: %s", error)
            loop.call_soon_threadsafe(closed)
        except RuntimeError:  # the loop is closed: the server has ended
            return

    threading.Thread(target=read, name="graphmend-reader", daemon=True).start()
