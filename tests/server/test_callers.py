"""What other files compile counts in the editor as it does on the command line, whichever files are open."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import Editor, capabilities

pytestmark = pytest.mark.asyncio

MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            return x
        return -x
"""
TRAINER = """import torch


class Trainer:
    def __init__(self, model):
        self.model = torch.compile(model)
"""
MAIN = """from model import Net
from trainer import Trainer

Trainer(Net())
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in (("model", MODEL), ("trainer", TRAINER), ("main", MAIN)):
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


async def standings(editor: Editor, uri: str) -> list[tuple[int, types.DiagnosticSeverity | None]]:
    return [(d.range.start.line + 1, d.severity) for d in await editor.diagnostics(uri)]


WARNING, INFORMATION = types.DiagnosticSeverity.Warning, types.DiagnosticSeverity.Information


async def test_a_caller_that_is_not_open_counts(editor: Editor, project: Path) -> None:
    uri = editor.open(project / "model.py", MODEL)
    assert await standings(editor, uri) == [(7, WARNING)]


async def test_the_editor_and_the_command_agree(editor: Editor, project: Path) -> None:
    command = [sys.executable, "-m", "graphmend", "check", "--output-format", "json", "--isolated", "--no-cache"]
    for paths in (["model.py"], ["."]):
        run = subprocess.run([*command, *paths], cwd=project, capture_output=True, text=True, check=False)
        assert [(f["location"]["row"], f["severity"]) for f in json.loads(run.stdout)] == [(7, "warning")]
    uris = [editor.open(project / name) for name in ("main.py", "trainer.py", "model.py")]
    assert [await standings(editor, uri) for uri in uris] == [[], [], [(7, WARNING)]]


async def test_findings_of_callers_move_with_edits(editor: Editor, project: Path) -> None:
    uri = editor.open(project / "model.py", MODEL)
    assert await standings(editor, uri) == [(7, WARNING)]
    editor.replace(uri, "class Net", "\n\nclass Net")
    assert await standings(editor, uri) == [(9, WARNING)]
    editor.replace(uri, "x.sum() > 0", "x.mean() > 0")
    assert await standings(editor, uri) == [(9, WARNING)]


async def test_an_edit_of_the_caller_reaches_the_callee(editor: Editor, project: Path) -> None:
    uri = editor.open(project / "model.py", MODEL)
    caller = editor.open(project / "main.py", MAIN)
    assert await standings(editor, uri) == [(7, WARNING)]
    editor.replace(caller, "Trainer(Net())", "Net()")
    editor.save(caller)
    await editor.until(lambda: _severity(editor, uri) == INFORMATION)
    editor.replace(caller, "\n\nNet()", "\n\nTrainer(Net())")
    editor.save(caller)
    await editor.until(lambda: _severity(editor, uri) == WARNING)


def _severity(editor: Editor, uri: str) -> types.DiagnosticSeverity | None:
    newest = next((p for p in reversed(editor.published) if p.uri == uri), None)
    return newest.diagnostics[0].severity if newest is not None and newest.diagnostics else None


async def test_a_compiled_child_does_not_silence_its_parent(editor: Editor, tmp_path: Path) -> None:
    text = MODEL + re.sub("Net", "Outer", MODEL[MODEL.index("class") :]).replace(
        "    def forward",
        "    def __init__(self):\n        super().__init__()\n        self.net = torch.compile(Net())\n    def forward",
    ).replace("if x.sum", "x = self.net(x)\n        if x.sum")
    uri = editor.open(tmp_path / "one.py", text)
    assert [severity for _, severity in await standings(editor, uri)] == [WARNING, INFORMATION]


@pytest.mark.parametrize("opened", [["model.py"], ["trainer.py", "main.py", "model.py"]])
async def test_opening_a_file_demotes_nothing(start: Start, project: Path, opened: list[str]) -> None:
    """A finding that the check of the whole folder made is as certain once its file is open, and when it is closed."""
    editor = await start(client=capabilities(pull=True), options={"settings": {"diagnosticMode": "workspace"}})

    async def closed() -> list[tuple[str, types.DiagnosticSeverity | None]]:
        reports = (await editor.client.workspace_diagnostic_async(types.WorkspaceDiagnosticParams([]))).items
        return [(Path(report.uri).name, each.severity) for report in reports for each in report.items]

    await editor.until(lambda: editor.refreshes)  # findings of one file come first, then what other files know of them
    assert await closed() == [("model.py", WARNING)]
    uris = [editor.open(project / name) for name in opened]
    for uri in uris:
        severities = [each.severity for each in (await editor.pull(uri)).items]
        assert severities == ([WARNING] if uri.endswith("model.py") else [])
    for uri in uris:
        editor.close(uri)
    assert await closed() == [("model.py", WARNING)]
