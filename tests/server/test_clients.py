"""Clients that can do little, count otherwise, or speak of a text that is gone: they get what they can use, and the
server stays."""

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

PRINT = 'import torch\n\n\n@torch.compile\ndef f(x: torch.Tensor):\n    {before}print("f")\n    return x\n'
PATIENCE = 120.0


@pytest.fixture
def printing(tmp_path: Path) -> Path:
    """A file with one break that is mended safely, behind characters that every encoding counts differently."""
    path = tmp_path / "printing.py"
    path.write_text(PRINT.format(before="'é☃\U0001d4b3'; "), encoding="utf-8")
    return path


def mended(text: str) -> bool:
    return 'emit(print, "f")' in text and "from graphmend.runtime import emit" in text


# What a client cannot do


async def test_a_client_that_declares_nothing_is_served(start: Start, printing: Path) -> None:
    editor = await start(client=types.ClientCapabilities())
    uri = editor.open(printing)
    (diagnostic,) = await editor.until(lambda: editor.published and editor.published[-1].diagnostics)
    assert diagnostic.related_information is None
    assert diagnostic.data is None
    hover = await editor.hover(uri, diagnostic.range.start)
    assert hover
    assert "**" not in hover
    actions = await editor.actions(uri, diagnostic.range)
    assert actions
    assert all(isinstance(action, types.Command) for action in actions)
    assert await editor.lenses(uri)


async def test_an_edit_that_a_client_cannot_take_is_told_instead(start: Start, printing: Path) -> None:
    editor = await start(client=types.ClientCapabilities())
    uri = editor.open(printing)
    assert await editor.execute("graphmend.mendFile", uri) is False
    assert editor.texts[uri] == printing.read_text("utf-8")


async def test_without_versions_every_edit_is_a_plain_one(start: Start, printing: Path) -> None:
    editor = await start(client=capabilities(versioned=False))
    uri = editor.open(printing)
    (diagnostic,) = await editor.diagnostics(uri)
    found = [
        *await editor.actions(uri, diagnostic.range),
        *await editor.actions(uri, diagnostic.range, only=["source.fixAll.graphmend"]),
    ]
    resolved = [a if a.edit else await editor.client.code_action_resolve_async(a) for a in found]
    assert len(resolved) >= 3
    for action in resolved:
        assert action.edit.document_changes is None, action.title
        assert action.edit.change_annotations is None, action.title
        assert list(action.edit.changes) == [uri], action.title
    assert await editor.execute("graphmend.mendFile", uri)
    assert mended(editor.texts[uri])


@pytest.mark.torch
async def test_without_progress_a_check_is_not_shown_but_answered(start: Start, printing: Path) -> None:
    trusted = {"trusted": True, "settings": {"interpreter": sys.executable, "verify": {"device": "cpu"}}}
    editor = await start(client=capabilities(progress=False), options=trusted)
    uri = editor.open(printing)
    outcome = await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    assert (outcome["status"], editor.progress) == ("checked", [])


@pytest.mark.torch
async def test_a_check_is_seen_at_once_by_a_client_that_cannot_be_told_to_pull_again(
    start: Start, printing: Path
) -> None:
    """Neovim 0.11 pulls after edits only."""
    client = capabilities(pull=True)
    assert client.workspace is not None
    client.workspace.diagnostics = None
    trusted = {"trusted": True, "settings": {"interpreter": sys.executable, "verify": {"device": "cpu"}}}
    editor = await start(client=client, options=trusted)
    uri = editor.open(printing)
    await editor.until(lambda: editor.published and editor.published[-1].diagnostics)
    await editor.execute("graphmend.verify", uri, patience=PATIENCE)
    (shown,) = await editor.until(lambda: [d for d in editor.published[-1].diagnostics if "confirmed" in d.message])
    (pulled,) = (await editor.pull(uri)).items  # whoever asks all the same is answered
    assert pulled.message == shown.message


# How a client counts


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
async def test_all_places_are_counted_as_agreed(start: Start, printing: Path, encoding: str) -> None:
    editor = await start(client=capabilities(encodings=(encoding,), resolve=False))
    uri = editor.open(printing)
    place = editor.at(uri, 'print("f")')
    (diagnostic,) = await editor.diagnostics(uri)
    assert diagnostic.range == place
    assert await editor.hover(uri, place.end)
    before = types.Position(place.start.line, place.start.character - 3)
    assert await editor.hover(uri, before) is None
    begin = editor.texts[uri].index("'; ")
    editor.edit(uri, begin, begin, "\U0001f525é")  # an edit behind such characters, and before the break
    (diagnostic,) = await editor.diagnostics(uri)
    assert editor.marked(uri, diagnostic) == 'print("f")'
    ignore = next(a for a in await editor.actions(uri, diagnostic.range) if a.title.startswith("Ignore"))
    ((_, (edit,)),) = editor.edits(ignore.edit)
    line_end = editor.texts[uri].index("\n", begin)
    assert edit.range == editor.range(editor.texts[uri], line_end, line_end)
    assert await editor.execute("graphmend.mendFile", uri)
    assert mended(editor.texts[uri])
    assert "'é☃\U0001d4b3\U0001f525é'; emit(" in editor.texts[uri]


async def test_an_encoding_that_nobody_knows_is_passed_over(start: Start, printing: Path) -> None:
    editor = await start(client=capabilities(encodings=("utf-7", "utf-32")))
    assert editor.encoding == "utf-32"
    editor = await start(client=capabilities(encodings=("utf-7",)))
    assert editor.encoding == "utf-16"


# Texts that are gone


async def test_ranges_of_an_older_and_longer_text_hold_nothing(editor: Editor, printing: Path) -> None:
    uri = editor.open(printing)
    (diagnostic,) = await editor.diagnostics(uri)
    old = diagnostic.range
    editor.change(uri, types.TextDocumentContentChangeWholeDocument("import torch\n"))
    assert await editor.actions(uri, old) == []
    assert await editor.hover(uri, old.start) is None
    backwards = types.Range(types.Position(99, 99), types.Position(0, 0))
    assert await editor.actions(uri, backwards) == []
    outcome = await editor.execute("graphmend.verify", uri, {"line": 99, "character": 99})
    assert outcome["status"] == "refused"  # nobody trusts this folder


async def test_a_range_of_an_older_text_finds_what_stands_there_now(editor: Editor, printing: Path) -> None:
    uri = editor.open(printing)
    (diagnostic,) = await editor.diagnostics(uri)
    old = diagnostic.range
    editor.edit(uri, 0, 0, "# one line more\n")
    assert await editor.actions(uri, old) == []
    actions = await editor.actions(uri, editor.at(uri, 'print("f")'))
    mend = await editor.client.code_action_resolve_async(actions[0])
    editor.apply(mend.edit)
    assert mended(editor.texts[uri])


# Settings


@pytest.mark.parametrize("folders", [1, 2])
async def test_a_wrong_setting_that_is_asked_for_is_named_once(start: Start, tmp_path: Path, folders: int) -> None:
    places = [tmp_path / str(number) for number in range(folders)]
    for place in places:
        place.mkdir()
        (place / "f.py").write_text(PRINT.format(before=""))
    editor = await start(client=capabilities(configuration=True), folders=[])
    editor.settings = {None: {"noSuchSetting": 1, "run": "sometimes"}}
    event = types.WorkspaceFoldersChangeEvent([types.WorkspaceFolder(p.as_uri(), p.name) for p in places], [])
    editor.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event))
    for place in places:
        uri = editor.open(place / "f.py")
        assert len(await editor.diagnostics(uri)) == 1  # by default
    for name in ("no-such-setting", "run"):
        assert len([line for line in editor.logged if f"settings: {name}" in line or f"`{name}`" in line]) == 1, name


async def test_settings_pushed_by_a_client_that_is_never_asked(start: Start, printing: Path) -> None:
    editor = await start()
    uri = editor.open(printing)
    assert len(await editor.diagnostics(uri)) == 1
    push = editor.client.workspace_did_change_configuration
    push(types.DidChangeConfigurationParams({"graphmend": {"ignore": ["GM2"]}}))
    await editor.until(lambda: not editor.published[-1].diagnostics)
    push(types.DidChangeConfigurationParams(None))
    await editor.until(lambda: editor.published[-1].diagnostics)


async def test_settings_of_initialize_hold_where_a_client_has_no_section(start: Start, printing: Path) -> None:
    options = {"settings": {"ignore": ["GM2"]}}
    editor = await start(client=capabilities(configuration=True), options=options)
    editor.settings = {None: None}  # so answer Helix and Zed
    uri = editor.open(printing)
    assert await editor.diagnostics(uri) == []
    editor.client.workspace_did_change_configuration(
        types.DidChangeConfigurationParams({"settings": {"run": "onType"}})
    )
    editor.replace(uri, "'; ", " '; ")
    assert await editor.diagnostics(uri) == []
    editor.settings = {None: {}}
    editor.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(None))
    await editor.until(lambda: editor.published[-1].diagnostics)


# Files that go away


async def check_in_the_background(editor: Editor, uri: str) -> asyncio.Task[Any]:
    """A check that has begun and still runs."""
    task = asyncio.ensure_future(editor.execute("graphmend.verify", uri, patience=PATIENCE))
    await editor.until(lambda: editor.progress, PATIENCE)
    return task


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    path = tmp_path / "slow.py"
    path.write_text("import time\n\ntime.sleep(2)\n" + PRINT.format(before=""))
    return path


TRUSTED = {"trusted": True, "settings": {"interpreter": sys.executable, "verify": {"device": "cpu"}}}


@pytest.mark.torch
async def test_a_file_that_is_deleted_while_a_check_runs(start: Start, slow: Path) -> None:
    editor = await start(options=TRUSTED)
    uri = editor.open(slow)
    task = await check_in_the_background(editor, uri)
    slow.unlink()
    event = types.FileEvent(uri, types.FileChangeType.Deleted)
    editor.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
    outcome = await task
    assert outcome["status"] == "checked"  # the editor still has the text
    assert editor.progress[-1].value["kind"] == "end"
    editor.close(uri)
    await editor.until(lambda: not editor.published[-1].diagnostics)


@pytest.mark.torch
async def test_a_file_that_is_renamed_while_a_check_runs(start: Start, slow: Path) -> None:
    editor = await start(options=TRUSTED)
    old = editor.open(slow)
    task = await check_in_the_background(editor, old)
    new_path = slow.rename(slow.with_name("renamed.py"))
    editor.close(old)
    new = editor.open(new_path)
    assert (await task)["status"] == "cancelled"
    assert editor.progress[-1].value["kind"] == "end"
    (diagnostic,) = await editor.diagnostics(new)
    assert "TorchDynamo" not in diagnostic.message
    assert not [p for p in editor.published if p.uri == old][-1].diagnostics
    assert (await editor.execute("graphmend.verify", new, patience=PATIENCE))["status"] == "checked"
