"""Running the server on a pair of streams until the conversation ends."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import socket
import sys
from typing import BinaryIO

from graphmend.server import app
from graphmend.server.lsp.client import ClientHandler
from graphmend.server.lsp.transport import StreamWriter, start_reader


def serve_stdio() -> int:
    """On standard input and output. Nothing else in the process reaches these two afterwards: what is written to
    standard output by accident goes to standard error, and standard input is empty."""
    source, sink = os.dup(sys.stdin.fileno()), os.dup(sys.stdout.fileno())
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), sys.stdin.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return serve(os.fdopen(source, "rb"), os.fdopen(sink, "wb"))


def serve_tcp(host: str, port: int) -> int:
    """For one client that connects to an address; port 0 takes a free one. The address is written to standard error."""
    with socket.create_server((host, port)) as listener:
        print("listening on {}:{}".format(*listener.getsockname()[:2]), file=sys.stderr, flush=True)
        connection, _ = listener.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return serve(connection.makefile("rb"), connection.makefile("wb"))


def serve(source: BinaryIO, sink: BinaryIO) -> int:
    """One conversation; its exit status is 0 where the client said `shutdown` before it left."""
    try:
        return asyncio.run(_serve(source, sink))
    finally:
        gc.freeze()  # the process ends: to look for garbage among all syntax trees would take seconds


async def _serve(source: BinaryIO, sink: BinaryIO) -> int:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    server, session = app.create()
    gc.freeze()  # what was imported stays: no collection while one types has to look at its 50,000 objects again
    sys.setswitchinterval(0.001)  # a message waits for two threads in turn; at Python's 5 ms each while one computes
    server.protocol.set_writer(StreamWriter(sink))
    server.protocol.ended = lambda status: None if ended.done() else ended.set_result(status)
    handler = ClientHandler(server, loop.call_soon_threadsafe)
    ours = logging.getLogger("graphmend")
    ours.addHandler(handler)
    ours.propagate = False
    logging.getLogger("pygls").setLevel(logging.CRITICAL)  # what it reports comes through `report_server_error`
    start_reader(source, server.protocol.receive, server.protocol.connection_lost)
    try:
        return await ended
    finally:
        ours.removeHandler(handler)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(session.close(), timeout=0.5)
