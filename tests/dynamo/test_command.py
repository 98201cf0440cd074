"""`graphmend verify`: exit statuses, formats, before and after, and any command."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.cli.main import main

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

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


def test_statuses(write: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    fine = write("def f(x):\n    return x + 1\n", "fine.py")
    assert verify(f"{fine}:f") == 0
    assert "no graph break: 1 graph" in capsys.readouterr().out
    assert verify(f"{fine}:g") == 2
    assert "has no g" in capsys.readouterr().err
    assert verify(str(fine.parent / "missing.py")) == 2
    assert verify("no_such_module:f") == 2
    assert verify(str(fine.parent)) == 2
    assert verify("--") == 2
    assert verify("--timeout", "nothing", str(fine)) == 2


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


def test_declared_targets_are_the_default(
    write: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write("class Net(nn.Module):\n    def forward(self, x):\n        return x.relu()\n")
    path.with_name("graphmend.toml").write_text('[[targets]]\ntarget = "model.py:Net"\ninputs = "torch.ones(3, 7)"\n')
    monkeypatch.chdir(path.parent)
    assert verify() == 0
    assert "Net()(torch.ones(3, 7))" in capsys.readouterr().out


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


def test_a_command_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--", sys.executable, "-c", "raise SystemExit(5)"]) == 2
    assert "ended with status 5" in capfd.readouterr().err
    assert main(["verify", "--", "no-such-command-at-all"]) == 2
