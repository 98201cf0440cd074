"""Asking a model from the editor: offered only where it is set, sent only with consent, applied only as asked."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from ..model.scripted import Server, says, serving
from .conftest import Start
from .editor import Editor, capabilities

pytestmark = pytest.mark.asyncio

MODEL = """import torch
from torch import nn


class Picks(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        h = self.lin(x)
        n = int((h > 0).sum().item())
        for i in range(n):
            h = h + i
        return h

    @staticmethod
    def example_inputs():
        return (torch.randn(3, 4),)
"""
RIGHT = """def forward(self, x):
    h = self.lin(x)
    n = (h > 0).sum()
    return h + n * (n - 1) // 2
"""
ANSWER = json.dumps({"differs": [], "why": "a sum"}) + f"\n```python\n{RIGHT}```\n"
PATIENCE = 120.0


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as made:
        made.scripts["small"] = says(ANSWER)
        yield made


def options(server: Server, **more: Any) -> dict[str, Any]:
    model = {"endpoint": server.url, "name": "small"}
    return {
        "trusted": True,
        "settings": {"interpreter": sys.executable, "verify": {"device": "cpu"}, "model": model},
        **more,
    }


async def opened(start: Start, tmp_path: Path, given: Any, *picks: str | None) -> tuple[Editor, str, list[str]]:
    """An editor with the file open, whose user picks these answers one after the other, and what it was asked."""
    path = tmp_path / "picks.py"
    path.write_text(MODEL, encoding="utf-8")
    can = capabilities()
    assert can.text_document is not None
    assert can.text_document.code_action is not None
    can.text_document.code_action.tag_support = types.CodeActionTagOptions([types.CodeActionTag.LlmGenerated])
    editor = await start(client=can, options=given)
    questions: list[str] = []
    answers = iter(picks)

    @editor.client.feature(types.WINDOW_SHOW_MESSAGE_REQUEST)
    def choose(params: types.ShowMessageRequestParams) -> types.MessageActionItem | None:
        questions.append(params.message)
        picked = next(answers, None)
        return types.MessageActionItem(picked) if picked is not None else None

    uri = editor.open(path)
    await editor.diagnostics(uri)
    return editor, uri, questions


async def ask_action(editor: Editor, uri: str) -> types.CodeAction | None:
    (shown,) = await editor.diagnostics(uri)
    actions = await editor.actions(uri, shown.range)
    return next((a for a in actions if a.title.startswith("Ask small")), None)


async def asked(editor: Editor, uri: str) -> Any:
    """What the command behind the action says."""
    action = await ask_action(editor, uri)
    assert action is not None
    assert action.command is not None
    return await editor.execute("graphmend.ask", *action.command.arguments, patience=PATIENCE)


async def test_it_is_offered_only_where_it_is_set_trusted_and_allowed(
    start: Start, tmp_path: Path, server: Server
) -> None:
    editor, uri, _ = await opened(start, tmp_path, options(server))
    action = await ask_action(editor, uri)
    assert action is not None
    assert (action.edit, action.is_preferred, action.kind) == (None, None, types.CodeActionKind.QuickFix)
    assert list(action.tags or ()) == [types.CodeActionTag.LlmGenerated]
    editor, uri, _ = await opened(start, tmp_path, options(server, trusted=False))
    assert await ask_action(editor, uri) is None
    editor, uri, _ = await opened(start, tmp_path, {"trusted": True})
    assert await ask_action(editor, uri) is None
    (tmp_path / "graphmend.toml").write_text("model-allowed = false\n", encoding="utf-8")
    editor, uri, _ = await opened(start, tmp_path, options(server))
    assert await ask_action(editor, uri) is None
    assert server.requests == []


async def test_a_projects_file_cannot_name_an_endpoint(start: Start, tmp_path: Path, server: Server) -> None:
    (tmp_path / "graphmend.toml").write_text(f'[model]\nendpoint = "{server.url}"\nname = "small"\n', encoding="utf-8")
    editor, uri, _ = await opened(start, tmp_path, {"trusted": True})
    assert await ask_action(editor, uri) is None


async def test_nothing_is_sent_without_consent(start: Start, tmp_path: Path, server: Server) -> None:
    editor, uri, questions = await opened(start, tmp_path, options(server), None)
    outcome = await asked(editor, uri)
    assert outcome["status"] == "cancelled"
    assert questions[0].startswith("Send ")
    assert "127.0.0.1" in questions[0]
    assert server.requests == []
    assert editor.texts[uri] == MODEL


@pytest.mark.torch
async def test_what_passed_is_applied(start: Start, tmp_path: Path, server: Server) -> None:
    editor, uri, questions = await opened(start, tmp_path, options(server), "Always for this host", "Apply")
    editor.client.protocol.notify("graphmend/didChangeModelKey", {"key": "sk-canary"})
    outcome = await asked(editor, uri)
    assert outcome["status"] == "mended", outcome
    assert len(questions) == 2
    assert "differs: written by small" in questions[1]
    body = "".join(f"    {line}" for line in RIGHT.splitlines(True))
    assert editor.texts[uri] == MODEL[: MODEL.index("    def forward")] + body + MODEL[MODEL.index("\n    @static") :]
    assert server.headers[0]["Authorization"] == "Bearer sk-canary"
    assert not any("sk-canary" in line for line in (*editor.logged, *editor.shown))


@pytest.mark.torch
async def test_a_document_that_changed_meanwhile_stays(start: Start, tmp_path: Path, server: Server) -> None:
    editor, uri, _ = await opened(start, tmp_path, options(server), "Send", "Apply")
    task = asyncio.ensure_future(asked(editor, uri))
    await editor.until(lambda: server.requests, PATIENCE)
    editor.edit(uri, 0, 0, "# one line more\n")
    outcome = await task
    assert outcome["status"] == "refused"
    assert "changed" in outcome["message"]
    assert editor.texts[uri] == "# one line more\n" + MODEL


@pytest.mark.torch
async def test_a_document_that_was_closed_meanwhile_stays(start: Start, tmp_path: Path, server: Server) -> None:
    editor, uri, _ = await opened(start, tmp_path, options(server), "Send", "Apply")
    task = asyncio.ensure_future(asked(editor, uri))
    await editor.until(lambda: server.requests, PATIENCE)
    editor.close(uri)
    outcome = await task
    assert outcome["status"] == "refused"
    assert "changed" in outcome["message"]
    assert (tmp_path / "picks.py").read_text("utf-8") == MODEL


@pytest.mark.torch
async def test_where_trust_is_withdrawn_meanwhile_nothing_is_applied(
    start: Start, tmp_path: Path, server: Server
) -> None:
    editor, uri, _ = await opened(start, tmp_path, options(server), "Send", "Apply")
    task = asyncio.ensure_future(asked(editor, uri))
    await editor.until(lambda: server.requests, PATIENCE)
    editor.client.protocol.notify("graphmend/didChangeTrust", {"trusted": False})
    outcome = await task
    assert outcome["status"] == "refused"
    assert editor.texts[uri] == MODEL


async def test_a_server_that_fails_is_said_in_one_line(start: Start, tmp_path: Path, server: Server) -> None:
    server.scripts["small"] = lambda handler, body, number: handler.plain(403, b"sk-canary")
    editor, uri, _ = await opened(start, tmp_path, options(server), "Send")
    outcome = await asked(editor, uri)
    assert outcome["status"] == "failed"
    assert "127.0.0.1 answers 403" in outcome["message"]
    assert any("answers 403" in line for line in editor.shown)
