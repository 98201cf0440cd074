"""`check --watch` in a process of its own: what a save changes is told again."""

from __future__ import annotations

import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

HELPER = "import torch\n\n\ndef helper(x: torch.Tensor):\n    {line}\n    return x\n"
MODEL = "import torch\n\nfrom middle import helper\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n    return helper(x)\n"


class Watched:
    """The output of a command that goes on."""

    def __init__(self, folder: Path, *options: str) -> None:
        command = [sys.executable, "-u", "-m", "graphmend", "check", "--watch", "--output-format", "concise", *options]
        self.process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip())

    def round(self) -> list[str]:
        """The lines of the next check."""
        lines = [self._lines.get(timeout=60)]
        while not lines[-1].endswith("waiting for changes."):
            lines.append(self._lines.get(timeout=60))
        return lines


@pytest.fixture
def watched(folder: Path) -> Iterator[Watched]:
    (folder / "helper.py").write_text(HELPER.format(line="pass"))
    (folder / "middle.py").write_text("from helper import helper\n")
    (folder / "model.py").write_text(MODEL)
    watched = Watched(folder)
    yield watched
    watched.process.kill()
    watched.process.wait()


def test_saves_new_files_and_settings_are_seen(watched: Watched, folder: Path) -> None:
    assert watched.round()[0] == "No graph breaks found, 3 files checked."
    (folder / "helper.py").write_text(HELPER.format(line="print(x)"))
    assert watched.round()[0].startswith("helper.py:5:5: GM201 "), "found from the file that compiles it"
    (folder / "new.py").write_text(MODEL.replace("return helper(x)", "return x * x.sum().item()"))
    lines = watched.round()
    assert [line.partition(":")[0] for line in lines[:2]] == ["helper.py", "new.py"]
    (folder / "helper.py").unlink()
    assert watched.round()[0].startswith("new.py:")
    (folder / "graphmend.toml").write_text("ignore = ['GM3']\n")
    assert watched.round()[0].startswith("No graph breaks found")


def test_who_compiles_may_stand_beside_the_folder(folder: Path) -> None:
    (folder / "models").mkdir()
    (folder / "models" / "__init__.py").write_text("")
    (folder / "models" / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
        "        print(x)\n        return x\n"
    )
    train = folder / "train.py"
    train.write_text("import torch\nfrom models.net import Net\n\nnet = Net()\nnet(torch.ones(1))\n")
    watched = Watched(folder, "models", "--output-format", "full")
    try:
        assert any("Net.forward (assumed)" in line for line in watched.round())
        train.write_text(train.read_text().replace("= Net()", "= torch.compile(Net())"))
        assert any("Net.forward (compiled)" in line for line in watched.round())
    finally:
        watched.process.kill()
        watched.process.wait()


@pytest.mark.parametrize("options", [["--fix"], ["--diff"], ["--output-format", "json"]])
def test_watching_neither_writes_nor_feeds_programs(run: Run, folder: Path, options: list[str]) -> None:
    outcome = run("check", "--watch", *options)
    assert outcome.status == 2
    assert "--watch goes with what people read" in outcome.err
