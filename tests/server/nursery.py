"""Run as a program: imports the server once and forks one off for each test, which takes milliseconds.

A line of JSON on standard input asks for a server, with the environment that it gets, or for the exit status of one. A
line on standard output answers: port and process, or the status.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import socket
import sys

import graphmend.analysis
import graphmend.server
import graphmend.transforms
import graphmend.workspace
from graphmend.server import app, main


def warm_up() -> None:
    """Imports what servers import when they are first asked for something."""
    for room in (graphmend.analysis, graphmend.workspace, graphmend.transforms, graphmend.server):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    app.create()


def serve(listener: socket.socket, environment: dict[str, str]) -> int:
    """The life of a forked server: one conversation, with the standard streams that `serve_stdio` leaves."""
    os.environ.clear()
    os.environ.update(environment)
    with open(os.devnull, "rb") as empty:
        os.dup2(empty.fileno(), sys.stdin.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    with listener:
        connection, _ = listener.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return main.serve(connection.makefile("rb"), connection.makefile("wb"))


def answer(asked: dict[str, object]) -> object:
    if "status_of" in asked:
        _, status = os.waitpid(int(str(asked["status_of"])), 0)
        return os.waitstatus_to_exitcode(status)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        process = os.fork()
        if not process:
            sys.exit(serve(listener, asked["environment"]))  # type: ignore[arg-type]
        return [listener.getsockname()[1], process]


if __name__ == "__main__":
    sys.path.pop(0)  # the tests' folder, which `python -m graphmend` would not have
    warm_up()
    for line in iter(sys.stdin.readline, ""):
        print(json.dumps(answer(json.loads(line))), flush=True)
