"""What a check leaves behind in the editor: verdicts that outlive edits elsewhere and the server itself, the inputs as
text, and mends that are made only if nothing differs."""

from __future__ import annotations

import functools
import sys
from pathlib import Path

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import Editor

pytestmark = pytest.mark.asyncio

PATIENCE = 120.0
TRUSTED = {"trusted": True, "settings": {"interpreter": sys.executable, "verify": {"device": "cpu"}}}
TWO = """\
import torch
from torch import nn

open("ran", "a").write("x")


class One(nn.Module):
    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            x = x + 1
        return x


class Two(nn.Module):
    def forward(self, x):
        if x.max() > 0:
            x = x + 2
        return x
"""


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """Two modules with a branch each; the file tells how often it was run."""
    path = tmp_path / "two.py"
    path.write_text(TWO)
    return path


async def messages(editor: Editor, uri: str) -> dict[str, str]:
    return {editor.marked(uri, d): d.message for d in await editor.diagnostics(uri)}


async def confirmed(editor: Editor, uri: str, count: int) -> dict[str, str]:
    """The findings that are confirmed, once there are so many."""
    while True:
        seen = len(editor.published)
        found = {text: said for text, said in (await messages(editor, uri)).items() if "confirmed by" in said}
        if len(found) == count:
            return found
        await editor.until(functools.partial(_more, editor, seen))


def _more(editor: Editor, seen: int) -> bool:
    return len(editor.published) > seen


@pytest.mark.torch
async def test_a_verdict_outlives_the_server_and_edits_of_other_functions(start: Start, two: Path) -> None:
    editor = await start(options=TRUSTED)
    uri = editor.open(two)
    for name in ("class One", "class Two"):  # one after the other: the second check leaves the first one's verdict
        line = {"line": editor.at(uri, name).start.line, "character": 0}
        outcome = await editor.execute("graphmend.verify", uri, line, patience=PATIENCE)
        assert outcome["status"] == "checked"
        assert outcome["memory"] > 1 << 20
    assert set(await confirmed(editor, uri, 2)) == {"x.sum() > 0", "x.max() > 0"}
    editor.replace(uri, "x + 1", "x + 7")
    after = await messages(editor, uri)
    assert "changed since TorchDynamo checked it" in after["x.sum() > 0"]
    assert "confirmed by TorchDynamo" in after["x.max() > 0"]
    lenses = await editor.lenses(uri)
    assert [lens.startswith("2 graphs, 1 graph break, verified on cpu: Two()(torch.randn(") for lens in lenses] == [
        False,
        True,
    ]

    runs = (two.parent / "ran").read_text()
    untrusted, later = await start(options={**TRUSTED, "trusted": False}), await start(options=TRUSTED)
    uri = untrusted.open(two)
    assert later.open(two) == uri
    assert set(await confirmed(later, uri, 2)) == {"x.sum() > 0", "x.max() > 0"}
    assert (two.parent / "ran").read_text() == runs
    assert await messages(untrusted, uri)
    assert not any("TorchDynamo" in d.message for p in untrusted.published for d in p.diagnostics)
    untrusted.client.protocol.notify("graphmend/didChangeTrust", {"trusted": True})
    assert set(await confirmed(untrusted, uri, 2)) == {"x.sum() > 0", "x.max() > 0"}


@pytest.mark.torch
async def test_inputs_that_were_made_up_can_be_written_into_the_file(start: Start, two: Path) -> None:
    two.write_text(TWO.replace("class Two", "@torch.compile(disable=False)\nclass Two"))
    editor = await start(options=TRUSTED)
    uri = editor.open(two)

    async def offered(text: str) -> list[types.CodeAction]:
        actions = await editor.actions(uri, editor.at(uri, text))
        return [action for action in actions if action.title == "Insert example inputs"]

    assert await offered("class One") == []
    await editor.execute("graphmend.verify", uri, editor_position(editor, uri, "class One"), patience=PATIENCE)
    (action,) = await offered("class One")
    assert await offered("x + 1") == []
    editor.apply(action.edit)
    assert "\n\n# graphmend: example One()(torch.randn(2, 8))\nclass One" in editor.texts[uri]
    assert await offered("class One") == []
    editor.replace(uri, "(2, 8)", "(3, 9)")
    outcome = await editor.execute(
        "graphmend.verify", uri, editor_position(editor, uri, "class One"), patience=PATIENCE
    )
    assert outcome["targets"][0]["inputs"] == "One()(torch.randn(3, 9))"


@pytest.mark.torch
async def test_what_to_write_where_no_inputs_fit(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "reader.py"
    path.write_text("import torch\n\n\n@torch.compile\ndef f(reader):\n    return reader.next_batch() + 1\n")
    editor = await start(options=TRUSTED)
    uri = editor.open(path)
    await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    assert any("No inputs found" in lens for lens in await editor.lenses(uri))
    (action,) = [a for a in await editor.actions(uri, editor.at(uri, "def f")) if a.title == "Insert example inputs"]
    editor.apply(action.edit)
    assert "\n\n# graphmend: example f(torch.randn(...))\n@torch.compile\n" in editor.texts[uri]


@pytest.mark.torch
async def test_a_mend_is_made_once_nothing_differs(start: Start, two: Path) -> None:
    editor = await start(options=TRUSTED)
    uri = editor.open(two)
    actions = await editor.actions(uri, editor.at(uri, "x.sum() > 0"))
    (action,) = [a for a in actions if a.title.startswith("Mend and verify: ")]
    outcome = await editor.execute(action.command.command, *action.command.arguments, patience=PATIENCE)
    assert outcome["status"] == "verified", outcome["message"]
    assert "x = select(x.sum() > 0, lambda: x + 1, lambda: x)" in editor.texts[uri]
    assert "if x.max() > 0:" in editor.texts[uri]
    gone = await editor.execute(action.command.command, *action.command.arguments, patience=PATIENCE)
    assert gone["status"] == "refused"


async def test_a_mend_is_not_verified_where_nothing_may_run(start: Start, two: Path) -> None:
    editor = await start(options={**TRUSTED, "trusted": False})
    uri = editor.open(two)
    actions = await editor.actions(uri, editor.at(uri, "x.sum() > 0"))
    assert not any(a.title.startswith("Mend and verify") for a in actions)
    data = {"uri": uri, "key": "", "code": "GM101", "rewrite": "where"}
    assert (await editor.execute("graphmend.mendAndVerify", data))["status"] == "refused"
    assert not (two.parent / "ran").exists()


def editor_position(editor: Editor, uri: str, text: str) -> dict[str, int]:
    start = editor.at(uri, text).start
    return {"line": start.line, "character": start.character}
