"""How long an editor waits for diagnostics: this server, one that does nothing, and others, under the same keys.

Statements are typed, a character at a time, into the middle of a long model file. After each character the client
pulls diagnostics, or (second mode) waits for those that are published for that version. Servers take turns in one run,
so that what else the machine does meets all of them.

    python bench/lsp_latency.py [--file FILE] [--characters N] [--server NAME ...] [--peers BIN] [--long] [--json]

`ruff`, `pylsp` and `jedi-language-server` are measured where they are found: in BIN, beside this interpreter or on the
path. They are peers to compare with and no dependencies; `pip install python-lsp-server jedi-language-server` in an
environment of their own is enough.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
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

TYPED = """
        scale = hidden_states.mean() * 2.0
        if scale > 1:
            hidden_states = hidden_states * scale
        kept = (hidden_states > 0).nonzero()
        print("scale", scale.item())
"""


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


@dataclass
class Times:
    """Seconds measured of one server in one mode."""

    initialize: float = 0.0
    first: float = 0.0
    keys: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """What the server's process had used after each key."""
    memory: float = 0.0
    timeouts: int = 0


class Client:
    """A client that answers what a server asks, and measures nothing itself."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._buffer = b""
        self._number = 0

    def send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._in.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def notify(self, method: str, params: Any) -> None:
        self.send(method=method, params=params)

    def ask(self, method: str, params: Any) -> Any:
        self._number += 1
        self.send(id=self._number, method=method, params=params)
        return next(m for m in self.messages() if "method" not in m and m.get("id") == self._number).get("result")

    def published(self, uri: str, version: int) -> None:
        """Waits for the diagnostics of a version; servers that name none are taken at their next word."""
        for message in self.messages():
            if message.get("method") == "textDocument/publishDiagnostics":
                params = message["params"]
                if params["uri"] == uri and params.get("version") in (None, version):
                    return

    def messages(self) -> Iterator[dict[str, Any]]:
        while True:
            message = json.loads(self._body())
            if "method" in message and "id" in message:
                self.send(id=message["id"], result=self._reply(message))
            yield message

    def _reply(self, request: dict[str, Any]) -> Any:
        if request["method"] == "workspace/configuration":
            return [None] * len(request["params"]["items"])
        return None

    def _body(self) -> bytes:
        while b"\r\n\r\n" not in self._buffer:
            self._more()
        head, _, rest = self._buffer.partition(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        )
        self._buffer = rest
        while len(self._buffer) < length:
            self._more()
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        return body

    def _more(self) -> None:
        data = self._out.read(1 << 16)
        if not data:
            raise EOFError("the server has ended")
        self._buffer += data

    def memory(self) -> float:
        """Resident MiB; 0 where the system does not say."""
        try:
            lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
            return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))
        except (OSError, StopIteration):
            return 0.0

    def processor(self) -> float:
        """Processor time that the server's process has used; 0 where the system does not say."""
        try:
            threads = Path(f"/proc/{self.process.pid}/task").iterdir()
            return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
        except (OSError, ValueError, IndexError):
            return 0.0

    def end(self) -> None:
        try:
            self.ask("shutdown", None)
            self.notify("exit", None)
            self.process.wait(5)
        except (OSError, EOFError, subprocess.TimeoutExpired):
            pass
        finally:
            self.process.kill()
            self.process.wait()


def capabilities(pull: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"publishDiagnostics": {"versionSupport": True}}
    if pull:
        document["diagnostic"] = {}
    return {
        "textDocument": document,
        "workspace": {"configuration": True},
        "general": {"positionEncodings": ["utf-16"]},
    }


class Run:
    """One server in one mode, typing."""

    def __init__(self, command: list[str], path: Path, text: str, pull: bool) -> None:
        self.times = Times()
        self._pull = pull
        self._uri = path.as_uri()
        self._version = 1
        begin = time.perf_counter()
        self._client = Client(command)
        params = {"processId": None, "rootUri": path.parent.as_uri(), "capabilities": capabilities(pull)}
        answer = self._client.ask("initialize", params)
        self.times.initialize = time.perf_counter() - begin
        self._pull = pull and "diagnosticProvider" in answer["capabilities"]
        self._client.notify("initialized", {})
        begin = time.perf_counter()
        document = {"uri": self._uri, "languageId": "python", "version": 1, "text": text}
        self._client.notify("textDocument/didOpen", {"textDocument": document})
        self._wait()
        self.times.first = time.perf_counter() - begin

    def type(self, line: int, character: int, key: str) -> None:
        self._version += 1
        place = {"line": line, "character": character}
        change = {"range": {"start": place, "end": place}, "text": key}
        begin = time.perf_counter()
        identifier = {"uri": self._uri, "version": self._version}
        self._client.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": [change]})
        self._wait()
        self.times.keys.append(time.perf_counter() - begin)
        self.times.processor.append(self._client.processor())

    def end(self) -> Times:
        self.times.memory = self._client.memory()
        self._client.end()
        return self.times

    def _wait(self) -> None:
        if self._pull:
            self._client.ask("textDocument/diagnostic", {"textDocument": {"uri": self._uri}})
        else:
            self._client.published(self._uri, self._version)


def middle(text: str) -> int:
    """A line in the middle of the text before which a statement of a `forward` may stand."""
    lines = text.split("\n")
    starts = [n for n, line in enumerate(lines) if line.startswith("    def forward(")]
    begin = min(starts, key=lambda n: abs(n - len(lines) // 2))
    return next(n for n in range(begin + 1, len(lines)) if lines[n].startswith("        return "))


def measure(
    chosen: dict[str, list[str]], path: Path, text: str, line: int, characters: int, pull: bool
) -> dict[str, Times]:
    """Every server types the same keys before the same line, each key in turn."""
    runs = {name: Run(command, path, text, pull) for name, command in chosen.items()}
    column = 0
    for run in runs.values():
        run.type(line, 0, "\n")
    for key in (TYPED * (characters // len(TYPED) + 1))[:characters]:
        for run in runs.values():
            run.type(line, column, key)
        line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
    return {name: run.end() for name, run in runs.items()}


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def row(times: Times) -> dict[str, float]:
    keys = times.keys[1:]
    return {
        "initialize": times.initialize * 1e3,
        "first": times.first * 1e3,
        "p50": statistics.median(keys) * 1e3,
        "p95": quantile(keys, 0.95) * 1e3,
        "max": max(keys) * 1e3,
        "processor": (times.processor[-1] - times.processor[0]) / len(keys) * 1e3,
        "MiB": times.memory,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--file", type=Path, help="the file to type into; default: transformers' modeling_longformer.py"
    )
    parser.add_argument("--characters", type=int, default=len(TYPED))
    parser.add_argument("--server", action="append", help="only this one; may be repeated")
    parser.add_argument("--long", action="store_true", help="also in a file ten times as long")
    parser.add_argument("--peers", type=Path, help="a folder with the programs of other servers")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    file = args.file or _longformer()
    if file is None:
        print("needs --file, or transformers installed", file=sys.stderr)
        return 2
    chosen = {name: command for name, command in servers(args.peers).items() if not args.server or name in args.server}
    results = []
    text = file.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file.name
        before = "".join(f"{_renamed(text, n)}\n\n" for n in range(4))
        after = "".join(f"\n\n{_renamed(text, n)}" for n in range(4, 9))
        texts = [("", text, 0), (" x10", before + text + after, before.count("\n"))]  # typed into the same function
        for times_longer, content, above in texts[: 1 + args.long]:
            path.write_text(content, encoding="utf-8")
            for mode in ("pull", "publish"):
                measured = measure(chosen, path, content, above + middle(text), args.characters, mode == "pull")
                results += [{"server": name, "mode": mode + times_longer, **row(t)} for name, t in measured.items()]
    if args.json:
        print(json.dumps(results, indent=1))
    else:
        _print(results)
    return 0


def _renamed(text: str, number: int) -> str:
    """A copy whose classes have names of their own."""
    return text.replace("Longformer", f"Longformer{number}")


def _longformer() -> Path | None:
    spec = importlib.util.find_spec("transformers")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "models" / "longformer" / "modeling_longformer.py"


def _print(results: list[dict[str, Any]]) -> None:
    columns = ("initialize", "first", "p50", "p95", "max", "processor", "MiB")
    print(f"{'server':<18}{'mode':<12}" + "".join(f"{c:>12}" for c in columns) + "   (ms)")
    for result in results:
        print(f"{result['server']:<18}{result['mode']:<12}" + "".join(f"{result[c]:>12.1f}" for c in columns))


if __name__ == "__main__":
    sys.exit(main())
