"""Checks with TorchDynamo from the editor: what they show, how they end, and that nothing runs without trust."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import Editor, capabilities

pytestmark = pytest.mark.asyncio

PATIENCE = 120.0
TRUSTED = {"trusted": True, "settings": {"interpreter": sys.executable, "verify": {"device": "cpu"}}}
ON_SAVE = {"trusted": True, "settings": {"interpreter": sys.executable, "verify": {"mode": "onSave", "device": "cpu"}}}


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """A module that leaves a file behind when anything runs it."""
    path = tmp_path / "canary.py"
    path.write_text(
        f"import torch\n\nopen({str(tmp_path / 'ran')!r}, 'w').close()\n\n\n@torch.compile\ndef f(x):\n    return x\n"
    )
    return path


@pytest.mark.torch
async def test_findings_are_confirmed_and_breaks_that_only_dynamo_sees_are_added(start: Start, module: Path) -> None:
    editor = await start(options=TRUSTED)
    hidden = "return self.hidden(z)\n\n    def hidden(self, z):\n        eval('print')(z)\n        return z"
    uri = editor.open(module, module.read_text("utf-8").replace("return z", hidden))
    before = await editor.diagnostics(uri)
    assert not any("TorchDynamo" in d.message for d in before)
    outcome = await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    assert (outcome["status"], outcome["device"]) == ("checked", "cpu")
    after = await editor.until(lambda: _confirmed(editor))
    by_text = {editor.marked(uri, d): d for d in after}
    assert by_text["y.sum() > 0"].severity == types.DiagnosticSeverity.Warning
    assert any(str(d.code).startswith("GM9") and "eval('print')" in editor.marked(uri, d) for d in after)
    assert any("verified on cpu" in lens for lens in await editor.lenses(uri))
    kinds = [report.value["kind"] for report in editor.progress]
    assert (kinds[0], kinds[-1]) == ("begin", "end")
    editor.edit(uri, 0, 0, "# one line more\n")
    assert {editor.marked(uri, d) for d in await editor.diagnostics(uri)} == set(by_text)


@pytest.mark.torch
async def test_a_whole_graph_is_timed_on_request(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "whole.py"
    path.write_text("import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n    return x + 1\n")
    editor = await start(options=TRUSTED)
    uri = editor.open(path)
    outcome = await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    assert [target["times"] for target in outcome["targets"]] == [None]
    params = types.CodeLensParams(types.TextDocumentIdentifier(uri))
    says, measure = await editor.client.text_document_code_lens_async(params)
    assert says.command.title.startswith("1 graph, verified on cpu: ")
    assert measure.command.title == "Measure speed"
    outcome = await editor.execute(measure.command.command, *measure.command.arguments, patience=PATIENCE)
    (times,) = [target["times"] for target in outcome["targets"]]
    assert times["eager"] > 0
    (says,) = await editor.lenses(uri)
    assert f"1 graph, verified on cpu, {times['eager'] / times['compiled']:.1f}x: " in says


@pytest.mark.torch
async def test_saving_checks_where_that_is_switched_on(start: Start, module: Path) -> None:
    editor = await start(options=ON_SAVE)
    uri = editor.open(module)
    await editor.diagnostics(uri)
    editor.save(uri)
    assert await editor.until(lambda: _confirmed(editor), PATIENCE)
    assert editor.checked[-1]["status"] == "checked"


@pytest.mark.torch
async def test_a_check_is_cancelled_from_its_progress(start: Start, tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time\n\nimport torch\n\ntime.sleep(60)\n\n\n@torch.compile\ndef f(x):\n    return x\n")
    editor = await start(options=TRUSTED)
    uri = editor.open(slow)
    task = asyncio.ensure_future(editor.execute("graphmend.verify", uri, patience=PATIENCE))
    await editor.until(lambda: editor.progress, PATIENCE)
    token = editor.progress[0].token
    editor.client.window_work_done_progress_cancel(types.WorkDoneProgressCancelParams(token))
    assert (await asyncio.wait_for(task, 10))["status"] == "cancelled"
    assert editor.progress[-1].value["kind"] == "end"


@pytest.mark.torch
async def test_the_server_leaves_at_once_while_a_check_runs(start: Start, tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text("import time\n\nimport torch\n\ntime.sleep(60)\n\n\n@torch.compile\ndef f(x):\n    return x\n")
    editor = await start(options=TRUSTED)
    uri = editor.open(slow)
    task = asyncio.ensure_future(editor.execute("graphmend.verify", uri, patience=PATIENCE))
    await editor.until(lambda: editor.progress, PATIENCE)
    assert await editor.leave() < 3
    task.cancel()


@pytest.mark.parametrize("options", [None, {"trusted": False}, {"trusted": "yes"}, {"trusted": 1}, ["trusted"]])
async def test_nothing_runs_without_trust(start: Start, canary: Path, options: Any) -> None:
    settings = {"interpreter": sys.executable, "verify": {"mode": "onSave"}}
    options = {**options, "settings": settings} if isinstance(options, dict) else options
    editor = await start(options=options)
    uri = editor.open(canary)
    await editor.diagnostics(uri)
    outcome = await editor.execute("graphmend.verify", uri)
    assert outcome["status"] == "refused"
    assert "trusted" in outcome["message"]
    editor.save(uri)
    await editor.lenses(uri)
    assert not canary.with_name("ran").exists()


@pytest.mark.torch
async def test_trust_comes_and_goes(start: Start, canary: Path) -> None:
    editor = await start(options={**TRUSTED, "trusted": False})
    uri = editor.open(canary)
    editor.client.protocol.notify("graphmend/didChangeTrust", {"trusted": True})
    assert (await editor.execute("graphmend.verify", uri, patience=PATIENCE))["status"] == "checked"
    assert canary.with_name("ran").exists()
    editor.client.protocol.notify("graphmend/didChangeTrust", {"trusted": False})
    assert (await editor.execute("graphmend.verify", uri))["status"] == "refused"


async def test_a_project_cannot_choose_what_runs(start: Start, canary: Path) -> None:
    lines = "[tool.graphmend]\ntrusted = true\ninterpreter = './evil'\n[tool.graphmend.verify]\nmode = 'onSave'\n"
    canary.with_name("pyproject.toml").write_text(lines)
    editor = await start(options={"trusted": True})
    uri = editor.open(canary)
    await editor.diagnostics(uri)
    editor.save(uri)
    await editor.lenses(uri)
    assert not canary.with_name("ran").exists()
    for name in ("trusted", "interpreter", "verify"):
        await editor.until(lambda name=name: any(name in line and "ignored" in line for line in editor.logged))


async def test_switched_off_is_off(start: Start, canary: Path) -> None:
    editor = await start(options={"trusted": True, "settings": {"verify": {"mode": "off"}}})
    uri = editor.open(canary)
    assert (await editor.execute("graphmend.verify", uri))["status"] == "refused"
    assert not canary.with_name("ran").exists()


async def test_an_interpreter_without_torch_is_one_clear_line(start: Start, module: Path, tmp_path: Path) -> None:
    editor = await start(
        client=capabilities(progress=False),
        options={"trusted": True, "settings": {"interpreter": str(tmp_path / "no" / "python")}},
    )
    uri = editor.open(module)
    outcome = await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    assert outcome["status"] == "failed"
    assert "\n" not in outcome["message"]
    assert editor.progress == []
    assert len(editor.shown) == 1


def _confirmed(editor: Editor) -> list[types.Diagnostic]:
    """The newest diagnostics, once some of them are confirmed."""
    newest = list(editor.published[-1].diagnostics) if editor.published else []
    return newest if any("confirmed by TorchDynamo" in d.message for d in newest) else []
