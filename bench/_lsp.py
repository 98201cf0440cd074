"""Language servers to measure, and a client that speaks to them and measures nothing itself."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTHING = """
from lsprotocol import types
from pygls.lsp.server import LanguageServer

server = LanguageServer("nothing", "1")
versions = {}

def changed(params):
    versions[params.text_document.uri] = params.text_document.version
    if not pulls:
        server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(params.text_document.uri, [], params.text_document.version))

@server.feature(types.INITIALIZE)
def initialize(params):
    global pulls
    pulls = params.capabilities.text_document.diagnostic is not None

server.feature(types.TEXT_DOCUMENT_DID_OPEN)(changed)
server.feature(types.TEXT_DOCUMENT_DID_CHANGE)(lambda params: changed(params))

@server.feature(types.TEXT_DOCUMENT_DIAGNOSTIC)
def pull(params):
    return types.RelatedFullDocumentDiagnosticReport(items=[])

server.start_io()
"""

#: Seconds that a client waits for an answer.
PATIENCE = 20.0


def servers(peers: Path | None = None) -> dict[str, list[str]]:
    """The command of each server that is installed; the others are named."""
    folders = [*([str(peers)] if peers else []), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    found = {
        "graphmend": [sys.executable, "-m", "graphmend", "server"],
        "nothing (pygls)": [sys.executable, "-c", NOTHING],
    }
    for name, program, *arguments in (("ruff", "ruff", "server"), ("pylsp", "pylsp"), ("jedi", "jedi-language-server")):
        path = shutil.which(program, path=os.pathsep.join(folders))
        if path:
            found[name] = [path, *arguments]
        else:
            print(f"{name} is left out: there is no {program}", file=sys.stderr)
    return found


def longformer() -> Path | None:
    """transformers' longest model file of the usual kind, of 2,100 lines; None where transformers is not installed."""
    from importlib.util import find_spec

    spec = find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "models" / "longformer" / "modeling_longformer.py"


class Client:
    """A client that answers what a server asks."""

    def __init__(self, command: list[str], patience: float = PATIENCE) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.patience = patience
        self._in, self._out = self.process.stdin, self.process.stdout
        self._buffer = b""
        self._number = 0

    def send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any) -> None:
        self.send(method=method, params=params)

    def request(self, method: str, params: Any) -> int:
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        return self._number

    def ask(self, method: str, params: Any) -> Any:
        """The result of a request; raises TimeoutError where it does not come."""
        number = self.request(method, params)
        return next(m for m in self.messages() if "method" not in m and m.get("id") == number).get("result")

    def published(self, uri: str, version: int) -> None:
        """Waits for the diagnostics of a version; servers that name none are taken at their next word."""
        for message in self.messages():
            if message.get("method") == "textDocument/publishDiagnostics":
                params = message["params"]
                if params["uri"] == uri and params.get("version") in (None, version):
                    return

    def messages(self) -> Iterator[dict[str, Any]]:
        """What the server says, for as long as the client's patience lasts."""
        deadline = time.monotonic() + self.patience
        while True:
            message = json.loads(self._body(deadline))
            if "method" in message and "id" in message:
                self.send(id=message["id"], result=self._reply(message))
            yield message

    def _reply(self, request: dict[str, Any]) -> Any:
        if request["method"] == "workspace/configuration":
            return [None] * len(request["params"]["items"])
        return None

    def _body(self, deadline: float) -> bytes:
        while b"\r\n\r\n" not in self._buffer:
            self._more(deadline)
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        while len(rest) < length:
            self._more(deadline)
            rest = self._buffer[len(head) + 4 :]
        body, self._buffer = rest[:length], rest[length:]
        return body

    def _more(self, deadline: float) -> None:
        if not select.select([self._out], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError(f"no answer within {self.patience:g} s")
        data = self._out.read(1 << 16)
        if not data:
            raise EOFError("the server has ended")
        self._buffer += data

    def memory(self) -> float:
        """Resident MiB; 0 where the system does not say."""
        return memory(self.process.pid)

    def processor(self) -> float:
        """Seconds of processor time that the server's process has used; 0 where the system does not say."""
        try:
            threads = Path(f"/proc/{self.process.pid}/task").iterdir()
            return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def end(self) -> float:
        """Ends the server, and by force where it does not leave; the seconds that took."""
        begin = time.perf_counter()
        try:
            self.ask("shutdown", None)
            self.notify("exit", None)
            self.process.wait(5)
        except (OSError, EOFError, TimeoutError, subprocess.TimeoutExpired):
            pass
        finally:
            self.process.kill()
            self.process.wait()
        return time.perf_counter() - begin


def memory(process: int, what: str = "VmRSS") -> float:
    """Resident MiB of a process (or, as `VmHWM`, the most that it ever was); 0 where the system does not say."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(what))
    except (OSError, StopIteration):
        return 0.0


def middle(text: str) -> int:
    """A line in the middle of the text before which a statement of a `forward` may stand."""
    lines = text.split("\n")
    starts = [n for n, line in enumerate(lines) if line.startswith("    def forward(")]
    begin = min(starts, key=lambda n: abs(n - len(lines) // 2))
    return next(n for n in range(begin + 1, len(lines)) if lines[n].startswith("        return "))


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]
