"""`%%graphmend`: runs a cell, says what `check` finds in it, and shows the report of `verify` on what it defines.

    %load_ext graphmend

The check runs in processes of its own, on the cells so far: the kernel's variables are not touched.
"""

from __future__ import annotations

import ast
import html
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmend.analysis.syntax.notebook_cells import python_lines

HEIGHT = 480
"""Pixels of the report."""


def register(shell: Any) -> None:
    """Makes the magic known to an IPython shell."""
    shell.register_magic_function(lambda line, cell: _Magic(shell)(line, cell), "cell", "graphmend")


@dataclass(frozen=True)
class Shown:
    """What the magic displays: the findings as text, and the report as a page of its own."""

    text: str
    page: str = ""

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        frame = ""
        if self.page:
            style = f"width:100%;height:{HEIGHT}px;border:0"
            frame = f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(self.page)}" style="{style}"></iframe>'
        return f"<pre>{html.escape(self.text)}</pre>{frame}"


class _Magic:
    def __init__(self, shell: Any) -> None:
        self._shell = shell

    def __call__(self, line: str, cell: str) -> Shown:
        """`line` holds options of `graphmend verify`, such as `--device cpu`."""
        self._shell.run_cell(cell)
        earlier = list(self._shell.history_manager.input_hist_raw)[1:-1]
        with tempfile.TemporaryDirectory(prefix="graphmend-cell-") as folder:
            path = Path(folder) / "notebook.ipynb"
            path.write_text(_notebook([*earlier, cell]), "utf-8")
            text = _findings(path, len(earlier) + 1)
            targets = [f"{path}:{name}" for name in _targets(cell)]
            page, problem = _report(targets, line.split()) if targets else ("", "")
        return Shown("\n".join(part for part in (text, problem) if part), page)


def _notebook(cells: Sequence[str]) -> str:
    made = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": cell} for cell in cells]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


def _findings(path: Path, number: int) -> str:
    """The findings in one cell, a line each."""
    done = _run("check", "--no-cache", "--output-format", "json", str(path))
    try:
        found = [item for item in json.loads(done.stdout) if item.get("cell") == number]
    except ValueError:
        return done.stderr.strip()
    lines = [f"{i['location']['row']}:{i['location']['column']}: {i['code']} {i['message']}" for i in found]
    return "\n".join(lines) or "No graph breaks found in this cell."


def _targets(cell: str) -> list[str]:
    """The modules and the functions that a cell defines for compilation."""
    lines = python_lines(cell.split("\n")) or []
    found = []
    for node in ast.parse("\n".join(lines)).body:
        if isinstance(node, ast.ClassDef):
            if any(isinstance(s, ast.FunctionDef) and s.name == "forward" for s in node.body):
                found.append(node.name)
        elif isinstance(node, ast.FunctionDef) and any("compile" in ast.unparse(d) for d in node.decorator_list):
            found.append(node.name)
    return found


def _report(targets: Sequence[str], options: Sequence[str]) -> tuple[str, str]:
    """The page, and why a part of it is missing."""
    done = _run("verify", "--output-format", "html", *options, *targets)
    return done.stdout, done.stderr.strip()


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in the kernel's environment and folder; what lies beside the notebook can be imported."""
    path = os.pathsep.join(entry for entry in (os.environ.get("PYTHONPATH"), os.getcwd()) if entry)
    command = [sys.executable, "-m", "graphmend", *arguments]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, encoding="utf-8", check=False
    )
