"""Forks of one process that has imported the server: importing it takes longer than most tests."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any


class Server:
    """A forked server, which waits at a port for one client."""

    def __init__(self, nursery: Nursery, port: int, pid: int) -> None:
        self.nursery = nursery
        self.port = port
        self.pid = pid
        self.returncode: int | None = None

    def kill(self) -> None:
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = int(self.nursery.ask(status_of=self.pid))
        return self.returncode


class Nursery:
    """The process that is forked, see `nursery.py`."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__).with_name("nursery.py"))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **asked: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def server(self) -> Server:
        return Server(self, *self.ask(environment=dict(os.environ)))

    def close(self) -> None:
        self.process.communicate(timeout=10)
