"""What Jupyter uses: the cell magic in a shell, and the specification that jupyter-lsp reads."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import graphmend
from graphmend.cli.jupyter import language_server

CELL = """\
@torch.compile
def f(x):
    print(helper(x))
    return x + 1
open("ran", "a").write("x")
"""


class Shell:
    """As much of IPython's shell as the magic uses."""

    def __init__(self, *earlier: str) -> None:
        self.history_manager = SimpleNamespace(input_hist_raw=["", *earlier])
        self.ran: list[str] = []
        self.magics: dict[str, Any] = {}

    def register_magic_function(self, function: Any, kind: str, name: str) -> None:
        self.magics[f"{kind} {name}"] = function

    def run_cell(self, cell: str) -> None:
        self.ran.append(cell)


@pytest.mark.torch
def test_a_cell_is_run_checked_and_verified(folder: Path) -> None:
    shell = Shell("%matplotlib inline\nimport torch\nfrom beside import helper", "raise SystemExit('earlier')")
    (folder / "beside.py").write_text("def helper(x):\n    return x.sum()\n")
    graphmend.load_ipython_extension(shell)
    shell.history_manager.input_hist_raw.append(f"%%graphmend --device cpu\n{CELL}")
    shown = shell.magics["cell graphmend"]("--device cpu", CELL)
    assert shell.ran == [CELL]
    assert str(shown).startswith("3:5: GM201 print() writes output")
    page = shown._repr_html_()
    assert "<iframe sandbox=" in page
    assert "GB0059" in page
    assert {path.name for path in folder.iterdir()} <= {"beside.py", "__pycache__"}


def test_a_cell_without_breaks_and_targets(folder: Path) -> None:
    shell = Shell()
    graphmend.load_ipython_extension(shell)
    shell.history_manager.input_hist_raw.append("%%graphmend\nx = 1")
    shown = shell.magics["cell graphmend"]("", "x = 1")
    assert str(shown) == "No graph breaks found in this cell."
    assert "<iframe" not in shown._repr_html_()


def test_jupyter_lsp_is_told_how_to_start_the_server() -> None:
    found = language_server.spec(None)["graphmend"]
    assert found["languages"] == ["python"]
    assert found["version"] == 2
    command = [*found["argv"][:3], "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert graphmend.__version__ in done.stdout
    assert found["argv"][0] == sys.executable


def test_the_entry_point_is_installed() -> None:
    points = importlib.metadata.entry_points(group="jupyter_lsp_spec_v1")
    if not any(point.name == "graphmend" for point in points):
        pytest.skip("installed before it had this entry point")
    (point,) = (point for point in points if point.name == "graphmend")
    assert point.load() is language_server.spec
