"""How long an editor waits for diagnostics: this server, one that does nothing, and others, under the same keys.

Statements are typed, a character at a time, into the middle of a long model file. After each character the client
pulls diagnostics, or (second mode) waits for those that are published for that version. Servers take turns in one run,
so that what else the machine does meets all of them. A server that lets the client wait in vain three times is left out
of the rest of that mode, and the table says so: some publish nothing for a version that changed nothing.

    python bench/lsp_latency.py [--file FILE] [--characters N] [--starts N] [--server NAME ...] [--peers BIN]
                                [--long] [--json]

`ruff`, `pylsp` and `jedi-language-server` are measured where they are found: in BIN, beside this interpreter or on the
path. They are peers to compare with and no dependencies; `pip install python-lsp-server jedi-language-server` in an
environment of their own is enough.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _lsp import Client, longformer, middle, quantile, servers

TYPED = """
        scale = hidden_states.mean() * 2.0
        if scale > 1:
            hidden_states = hidden_states * scale
        kept = (hidden_states > 0).nonzero()
        print("scale", scale.item())
"""

#: Seconds to wait for an answer, and how often in vain.
PATIENCE = 5.0
TIMEOUTS = 3


def capabilities(pull: bool) -> dict[str, Any]:
    document: dict[str, Any] = {"publishDiagnostics": {"versionSupport": True}}
    if pull:
        document["diagnostic"] = {}
    return {
        "textDocument": document,
        "workspace": {"configuration": True},
        "general": {"positionEncodings": ["utf-16"]},
    }


@dataclass
class Start:
    """What it costs until `initialize` is answered, in milliseconds."""

    wall: float
    processor: float


def start(command: list[str], folder: Path) -> Start:
    begin = time.perf_counter()
    client = Client(command)
    client.ask("initialize", {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities(True)})
    measured = Start((time.perf_counter() - begin) * 1e3, client.processor() * 1e3)
    client.end()
    return measured


def starts(chosen: dict[str, list[str]], folder: Path, times: int) -> list[dict[str, Any]]:
    """Every server starts so many times, in turns; medians."""
    measured: dict[str, list[Start]] = {name: [] for name in chosen}
    for number in range(times + 1):
        for name, command in chosen.items():
            once = start(command, folder)
            if number:  # the first one fills the disk's cache
                measured[name].append(once)
    return [
        {
            "server": name,
            "wall": statistics.median(s.wall for s in one),
            "p95": quantile([s.wall for s in one], 0.95),
            "processor": statistics.median(s.processor for s in one),
        }
        for name, one in measured.items()
    ]


@dataclass
class Times:
    """Seconds measured of one server in one mode."""

    first: float = 0.0
    keys: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    """What the server's process had used after each key."""
    memory: float = 0.0
    timeouts: int = 0


class Run:
    """One server in one mode, typing."""

    def __init__(self, command: list[str], path: Path, text: str, pull: bool) -> None:
        self.times = Times()
        self._pull = pull
        self._uri = path.as_uri()
        self._version = 1
        self._client = Client(command)
        params = {"processId": None, "rootUri": path.parent.as_uri(), "capabilities": capabilities(pull)}
        answer = self._client.ask("initialize", params)
        self._pull = pull and "diagnosticProvider" in answer["capabilities"]
        self._client.notify("initialized", {})
        self._client.patience = PATIENCE
        document = {"uri": self._uri, "languageId": "python", "version": 1, "text": text}
        self.times.first = self._timed(
            lambda: self._client.notify("textDocument/didOpen", {"textDocument": document})
        ) or float("nan")

    @property
    def answers(self) -> bool:
        return self.times.timeouts < TIMEOUTS

    def type(self, line: int, character: int, key: str) -> None:
        self._version += 1
        place = {"line": line, "character": character}
        change = {"range": {"start": place, "end": place}, "text": key}
        params = {"textDocument": {"uri": self._uri, "version": self._version}, "contentChanges": [change]}
        taken = self._timed(lambda: self._client.notify("textDocument/didChange", params))
        if taken is not None:
            self.times.keys.append(taken)
            self.times.processor.append(self._client.processor())

    def end(self) -> Times:
        self.times.memory = self._client.memory()
        self._client.end()
        return self.times

    def _timed(self, notify: Callable[[], None]) -> float | None:
        """Seconds from a notification to the diagnostics that follow from it; None where they do not come."""
        begin = time.perf_counter()
        try:
            notify()
            if self._pull:
                self._client.ask("textDocument/diagnostic", {"textDocument": {"uri": self._uri}})
            else:
                self._client.published(self._uri, self._version)
        except TimeoutError:
            self.times.timeouts += 1
            return None
        return time.perf_counter() - begin


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
            if run.answers:
                run.type(line, column, key)
        line, column = (line + 1, 0) if key == "\n" else (line, column + 1)
    return {name: run.end() for name, run in runs.items()}


def row(times: Times) -> dict[str, Any]:
    keys = times.keys[1:]
    result: dict[str, Any] = {"first": times.first * 1e3, "MiB": times.memory, "timeouts": times.timeouts}
    if keys:
        result |= {
            "p50": statistics.median(keys) * 1e3,
            "p95": quantile(keys, 0.95) * 1e3,
            "max": max(keys) * 1e3,
            "processor": (times.processor[-1] - times.processor[0]) / len(keys) * 1e3,
        }
    if times.timeouts >= TIMEOUTS:
        result["note"] = f"left out after {len(times.keys)} keys: no answer within {PATIENCE:g} s, {TIMEOUTS} times"
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--file", type=Path, help="the file to type into; default: transformers' modeling_longformer.py"
    )
    parser.add_argument("--characters", type=int, default=len(TYPED))
    parser.add_argument("--starts", type=int, default=10, help="how often each server is started (default: 10)")
    parser.add_argument("--server", action="append", help="only this one; may be repeated")
    parser.add_argument("--long", action="store_true", help="also in a file ten times as long")
    parser.add_argument("--peers", type=Path, help="a folder with the programs of other servers")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    file = args.file or longformer()
    if file is None:
        print("needs --file, or transformers installed", file=sys.stderr)
        return 2
    chosen = {name: command for name, command in servers(args.peers).items() if not args.server or name in args.server}
    results = []
    text = file.read_text("utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file.name
        started = starts(chosen, Path(folder), args.starts) if args.starts else []
        if started and not args.json:
            _print("until initialize is answered", started, ("wall", "p95", "processor"))
        before = "".join(f"{_renamed(text, n)}\n\n" for n in range(4))
        after = "".join(f"\n\n{_renamed(text, n)}" for n in range(4, 9))
        texts = [("", text, 0), (" x10", before + text + after, before.count("\n"))]  # typed into the same function
        for times_longer, content, above in texts[: 1 + args.long]:
            path.write_text(content, encoding="utf-8")
            for mode in ("pull", "publish"):
                measured = measure(chosen, path, content, above + middle(text), args.characters, mode == "pull")
                rows = [{"server": name, "mode": mode + times_longer, **row(t)} for name, t in measured.items()]
                results += rows
                if not args.json:
                    _print("keys", rows, ("first", "p50", "p95", "max", "processor", "MiB", "timeouts"))
    if args.json:
        print(json.dumps({"starts": started, "keys": results}, indent=1))
    return 0


def _renamed(text: str, number: int) -> str:
    """A copy whose classes have names of their own."""
    return text.replace("Longformer", f"Longformer{number}")


def _print(title: str, results: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    print(f"{title} (ms)")
    print(f"{'server':<18}{'mode':<12}" + "".join(f"{c:>12}" for c in columns))
    for result in results:
        cells = (f"{result[c]:>12.{0 if c == 'timeouts' else 1}f}" if c in result else f"{'-':>12}" for c in columns)
        print(
            f"{result['server']:<18}{result.get('mode', ''):<12}{''.join(cells)}   {result.get('note', '')}".rstrip(),
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
