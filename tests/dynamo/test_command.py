"""`graphmend verify`: exit statuses, formats, before and after, and any command."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.cli.main import main
from graphmend.cli.paths import relative

pytestmark = pytest.mark.torch

BREAKS = """
@torch.compile
def f(x):
    print("before")
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y
"""


def verify(*words: str) -> int:
    return main(["verify", "--device", "cpu", "--python", sys.executable, *words])


def test_wrong_use(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    path = write(BREAKS)
    for words in (["missing.py"], ["no_such_module:f"], [str(path.parent)], ["--"], ["--timeout", "x", str(path)]):
        assert verify(*words) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_json(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    path = write(BREAKS)
    assert verify(str(path), "--output-format", "json") == 1
    (report,) = json.loads(capsys.readouterr().out)
    (target,) = report["targets"]
    assert target["name"] == "f"
    assert [(b["gb_id"], b["location"]) for b in target["breaks"]] == [
        ("GB0059", {"row": 6, "column": 5}),
        ("GB0170", {"row": 7, "column": 8}),
    ]
    assert [(f["code"], f["verdict"]) for f in report["findings"]] == [("GM201", "confirmed"), ("GM101", "confirmed")]


def test_a_page(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    path = write(BREAKS.replace('"before"', '"<b>before</b>"'))
    assert verify(str(path), "--output-format", "html") == 1
    page = capsys.readouterr().out
    assert page.startswith("<!doctype html>")
    assert "GB0170" in page
    (cut,) = re.findall(r'<div class="cut" title="(.*?)">(\d)</div>', page)
    assert ("x.sum()" in cut[0], cut[1]) == (True, "2")
    assert "&lt;b&gt;before" in page
    assert "<b>before" not in page
    assert "://" not in page


def test_declared_targets_are_the_default(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("class Net(nn.Module):\n    def forward(self, x):\n        return x.relu()\n")
    path.with_name("graphmend.toml").write_text('[[targets]]\ntarget = "model.py:Net"\ninputs = "torch.ones(3, 7)"\n')
    monkeypatch.chdir(path.parent)
    assert verify() == 0
    out = capsys.readouterr().out
    assert "Net()(torch.ones(3, 7))" in out
    assert "no graph break: 1 graph" in out


def test_a_command_and_its_children_are_watched(
    write: Callable[..., Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(
        """
        import multiprocessing, os

        @torch.compile(backend="eager")
        def f(x):
            return x * x.sum().item()

        def child():
            f(torch.ones(2))
            os._exit(0)

        if __name__ == "__main__":
            f(torch.ones(2))
            process = multiprocessing.get_context("spawn").Process(target=child)
            process.start()
            process.join()
        """
    )
    monkeypatch.chdir(path.parent)
    assert main(["verify", "--output-format", "json", "--", sys.executable, "model.py"]) == 1
    found = json.loads(capfd.readouterr().out)
    assert (found["processes"], found["exit_status"]) == (2, 0)
    assert [(b["location"]["row"], b["gb_id"], b["count"]) for b in found["breaks"]] == [(8, "GB0124", 2)]


def test_frames_of_the_standard_library_are_nobodys_breaks(
    write: Callable[..., Path], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a break makes run eagerly goes on in frames of Python's own files: they are not the user's to mend."""
    path = write(
        """
        import contextlib, logging, warnings

        @contextlib.contextmanager
        def told(x):
            warnings.warn(f"{x.sum().item():.0f}")
            yield

        @torch.compile(backend="eager")
        def f(x):
            with told(x):
                logging.getLogger("run").warning("%s", x)
                return x * 2

        f(torch.ones(2))
        """
    )
    monkeypatch.chdir(path.parent)
    assert main(["verify", "--output-format", "json", "--", sys.executable, "model.py"]) == 1
    found = json.loads(capfd.readouterr().out)
    assert found["breaks"]
    assert {Path(b["filename"]).name for b in found["breaks"]} == {"model.py"}


def test_a_page_of_a_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import torch\n@torch.compile(backend='eager')\ndef f(x):\n    return x * x.sum().item()\n"
        "print('said')\nf(torch.ones(2))\n"
    )
    assert main(["verify", "--output-format", "html", "--", sys.executable, str(script)]) == 1
    printed = capfd.readouterr()
    assert printed.out.startswith("<!doctype html>")
    assert "GB0124" in printed.out
    assert "said" in printed.err


def test_a_command_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--", sys.executable, "-c", "raise SystemExit(5)"]) == 2
    assert "ended with status 5" in capfd.readouterr().err
    assert main(["verify", "--", "no-such-command-at-all"]) == 2


NAMED = """
class Gate(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x + 1
        if x.max() > 2:
            x = x - 1
        return shown(x)

class Other(nn.Module):
    def forward(self, x):
        return x * x.sum().item()

def shown(x):
    if x.dtype == torch.int64:
        print(x.sum())
    return x
"""


def test_what_the_target_neither_holds_nor_calls_is_left_out(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(NAMED)
    assert verify(f"{path}:Gate") == 1
    out = capsys.readouterr().out
    assert "2 of 3 findings confirmed" in out
    assert "not reached: GM201 in line 18\n" in out
    hints = [line for line in out.splitlines() if "hint: " in line]
    assert len(hints) == len(set(hints)) > 0


def test_mends_that_only_unsafe_fixes_would_make(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    text = NAMED.replace(
        "def forward(self, x):\n        if x.sum", "def forward(self, x, limit):\n        if limit.item"
    )
    text = text.replace("return shown(x)", "return x").replace("max() > 2", "max().item() > 2")
    path = write(text)
    before = path.read_text()
    verify(f"{path}:Gate", "--mend")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  mended ")]
    assert re.fullmatch(r"  mended    nothing; \d can be mended with --unsafe-fixes", line)
    verify(f"{path}:Gate", "--mend", "--unsafe-fixes")
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  mended ")]
    assert "nothing" not in line
    assert "unsafe" not in line
    assert path.read_text() == before


def test_a_function_that_only_others_compile_is_foreseen(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write("def loss(x):\n    if x.sum() > 3:\n        x = x / 2\n    return x\n", "losses.py")
    assert verify(f"{path}:loss", "--output-format", "json") == 1
    (report,) = json.loads(capsys.readouterr().out)
    assert [(f["code"], f["verdict"]) for f in report["findings"]] == [("GM101", "confirmed")]


AGENT = """
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = Actor()

    def loss(self, x):
        y = self.actor(x).mean()
        if y.item() > 3:
            print(y)
        return y

class Actor(nn.Module):
    def forward(self, x):
        return x * 2
"""


def test_what_was_not_run_at_all_is_said_with_its_name(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A break in a method that another file compiles: its class has no `forward` that could be run."""
    path = write(AGENT)
    (path.parent / "main.py").write_text(
        f"import torch\nfrom {path.stem} import Agent\nagent = Agent()\nstep = torch.compile(agent.loss)\n"
        "step(torch.randn(3))\n"
    )
    assert verify(str(path)) == 0
    out = capsys.readouterr().out
    assert "graphmend check: 0 of 2 findings confirmed" in out
    assert f"to run them: graphmend verify {relative(str(path))}:Agent.loss\n" in out
    assert verify(f"{path}:Agent") == 2
    assert "Agent has no forward; name a method of it: Agent.loss" in capsys.readouterr().err
    assert verify(f"{path}:Agent.loss") == 1


def test_places_in_a_notebook_are_those_of_its_cells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "    def forward(self, x):\n        if x.shape[0] > 100:\n            print(x)\n        return x\n"
    sources = ["import torch\nfrom torch import nn\n", f"class Net(nn.Module):\n{body}", "y = Net()(torch.ones(2))\n"]
    cells = [{"cell_type": "code", "source": each, "metadata": {}, "outputs": []} for each in sources]
    path = tmp_path / "look.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    assert verify(str(path)) == 0
    assert "not reached: GM201 in cell 2, line 4\n" in capsys.readouterr().out
