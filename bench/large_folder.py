"""Typing in a model file while a large folder around it is checked, and how long that check takes.

    python bench/large_folder.py [PACKAGE] [--files N] [--characters N] [--until-end]

PACKAGE is copied (by default transformers' own, so often that there are 4,000 Python files), the server is told to show
the findings of the whole workspace, and statements are typed into the middle of a long model file: first in a server
that checks open files only, then while the folder is checked. Prints the times from a key to its diagnostics, when the
findings of the first and the last file came, the most memory of the server and of the process that checks, and how long
`shutdown` takes in the midst of it. The goal: the same latency with and without the check, and a second until the end.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _lsp import Client, longformer, memory, middle, quantile

TYPED = "        scale = hidden_states.mean() * 2.0\n        if scale > 1:\n            scale = scale.item()\n"
MODES = ("openFilesOnly", "workspace")


class Editor:
    """One server with a folder and a file of it open, in a mode of diagnostics."""

    def __init__(self, folder: Path, file: Path, mode: str) -> None:
        self.client = Client([sys.executable, "-m", "graphmend", "server"])
        self.client.patience = 3600.0
        self._uri, self._version = file.as_uri(), 1
        text = file.read_text("utf-8")
        self._line, self._column = middle(text), 0
        capabilities = {"textDocument": {"diagnostic": {}}, "window": {"workDoneProgress": True}}
        params = {"processId": None, "rootUri": folder.as_uri(), "capabilities": capabilities}
        settings = {"settings": {"diagnosticMode": mode}}
        self.client.ask("initialize", {**params, "initializationOptions": settings})
        self.begun = time.perf_counter()
        self.client.notify("initialized", {})
        document = {"uri": self._uri, "languageId": "python", "version": 1, "text": text}
        self.client.notify("textDocument/didOpen", {"textDocument": document})
        self.pull()

    def pull(self) -> None:
        self.client.ask("textDocument/diagnostic", {"textDocument": {"uri": self._uri}})

    def type(self, key: str) -> float:
        """Milliseconds until the diagnostics of a key."""
        self._version += 1
        place = {"line": self._line, "character": self._column}
        change = {"range": {"start": place, "end": place}, "text": key}
        begin = time.perf_counter()
        params = {"textDocument": {"uri": self._uri, "version": self._version}, "contentChanges": [change]}
        self.client.notify("textDocument/didChange", params)
        self.pull()
        self._line, self._column = (self._line + 1, 0) if key == "\n" else (self._line, self._column + 1)
        return (time.perf_counter() - begin) * 1e3

    def keys(self, count: int) -> str:
        used = self.client.processor()
        taken = sorted(self.type(key) for key in (TYPED * (count // len(TYPED) + 1))[:count])
        used = (self.client.processor() - used) / count * 1e3
        times = f"p50 {statistics.median(taken):.1f} ms, p95 {quantile(taken, 0.95):.1f} ms, max {taken[-1]:.1f} ms"
        return f"{times} a key; processor {used:.1f} ms"

    def child(self) -> int | None:
        """The process that checks the folder."""
        server = self.client.process.pid
        try:
            return next(iter(map(int, Path(f"/proc/{server}/task/{server}/children").read_text().split())), None)
        except OSError:
            return None

    def check(self) -> str:
        """Waits until the folder is checked, as a client that shows what comes."""
        number = self.client.request("workspace/diagnostic", {"previousResultIds": [], "partialResultToken": "part"})
        first, files, findings, most = 0.0, 0, 0, 0.0
        for message in self.client.messages():
            if (child := self.child()) is not None:
                most = max(most, memory(child, "VmHWM"))
            if message.get("method") == "$/progress" and message["params"]["token"] == "part":
                items: list[dict[str, Any]] = message["params"]["value"]["items"]
                first = first or time.perf_counter() - self.begun
                files, findings = files + len(items), findings + sum(len(item.get("items", ())) for item in items)
            if "method" not in message and message.get("id") == number:
                break
        seconds = time.perf_counter() - self.begun
        server = memory(self.client.process.pid, "VmHWM")
        return (
            f"{findings} findings in {files} files; the first after {first:.1f} s, the last after {seconds:.1f} s; "
            f"server {server:.0f} MiB, checking process {most:.0f} MiB"
        )


def fill(folder: Path, source: Path, files: int) -> int:
    """Copies the Python files of a package into as many packages as it takes."""
    paths = sorted(source.rglob("*.py"))
    made = 0
    while made < files:
        place = folder / f"part{made // len(paths)}" / source.name
        for path in paths[: files - made]:
            target = place / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            made += 1
    return made


def runs(process: int) -> bool:
    """Whether a process goes on: one that has ended may wait for somebody to ask how."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package", nargs="?", type=Path, help="a package; default: the installed transformers")
    parser.add_argument("--files", type=int, default=4000)
    parser.add_argument("--characters", type=int, default=200)
    parser.add_argument("--until-end", action="store_true", help="wait for the end of the check, which takes minutes")
    args = parser.parse_args()
    model = longformer()
    if model is None:
        print("needs transformers installed", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = fill(folder, args.package or model.parents[2], args.files)
        file = folder / model.name
        shutil.copyfile(model, file)
        print(f"{made} files")
        for mode in MODES:
            editor = Editor(folder, file, mode)
            time.sleep(2.0 if mode == "workspace" else 0.0)  # until the check is under way
            print(f"{mode}: {editor.keys(args.characters)}", flush=True)
            if mode == "workspace" and args.until_end:
                print(editor.check(), flush=True)
                print(f"checked: {editor.keys(args.characters)}", flush=True)
            child = editor.child()
            print(f"shutdown: {editor.client.end():.2f} s", flush=True)
            if child is not None and mode == "workspace":
                print(f"the checking process is {'left' if runs(child) else 'gone'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
