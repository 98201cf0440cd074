"""What goes wrong around the server: files that turn into folders, no place for a cache, documents far too long."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import Editor, capabilities, new_client
from .test_workspace import BREAKS, USES, pull, watched

pytestmark = pytest.mark.asyncio


async def test_a_document_that_is_too_long_is_skipped_with_one_note(start: Start, module: Path, tmp_path: Path) -> None:
    editor = await start(client=capabilities(pull=True))
    long = editor.open(tmp_path / "long.py", BREAKS + "# " + "x" * 10_000_000)
    for _ in range(3):
        editor.edit(long, 0, 0, "\n")
        assert not (await editor.pull(long)).items
    assert len((await editor.pull(editor.open(module))).items) == 2
    assert len([line for line in editor.logged if "not analysed" in line]) == 1


async def test_a_change_of_a_document_that_is_not_open_is_dropped(start: Start, module: Path) -> None:
    editor = await start(client=capabilities(pull=True))
    editor.change(module.as_uri(), types.TextDocumentContentChangeWholeDocument("import torch\n"), version=7)
    await editor.until(lambda: any("not open" in line for line in editor.logged))
    assert len((await editor.pull(editor.open(module))).items) == 2


async def test_versions_may_go_back(start: Start, module: Path) -> None:
    editor = await start(client=capabilities(pull=True))
    uri = editor.open(module)
    for version in (9, 3):
        place = types.Range(types.Position(0, 0), types.Position(0, 0))
        editor.change(uri, types.TextDocumentContentChangePartial(range=place, text="\n"), version=version)
    lines = [item.range.start.line for item in (await editor.pull(uri)).items]
    text = "\n\n" + module.read_text("utf-8")
    assert lines == [n for n, line in enumerate(text.split("\n")) if ".sum() > 0" in line or ".max() > 3" in line]


async def test_a_file_that_becomes_a_folder_is_gone(start: Start, tmp_path: Path) -> None:
    helper, user = tmp_path / "helper.py", tmp_path / "user.py"
    helper.write_text("def positive(x):\n    return x.sum() > 0\n")
    user.write_text(USES)
    editor = await start(client=capabilities(pull=True))
    uri = editor.open(user)
    assert len((await editor.pull(uri)).items) == 1
    for path in (helper, user):
        path.unlink()
        path.mkdir()
        watched(editor, path)
        editor.save(uri)
        assert not (await editor.pull(uri)).items
    assert not [line for line in editor.logged if "Traceback" in line]


#: how to start a server that cannot write a cache
CACHELESS = {
    "no-such-place": {"GRAPHMEND_CACHE_DIR": os.devnull},
    "disk-full": {},
}
LIMITED = """
import os, resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # every write to a file fails, as it does on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
os.execv(sys.executable, [sys.executable, "-m", "graphmend", "server"])
"""


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX's")
@pytest.mark.parametrize("case", CACHELESS)
async def test_a_cache_that_cannot_be_written_is_done_without(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.py").write_text(BREAKS)
    for name, value in CACHELESS[case].items():
        monkeypatch.setenv(name, value)
    client = new_client()
    command: tuple[Any, ...] = ("-c", LIMITED) if case == "disk-full" else ("-m", "graphmend", "server")
    await client.start_io(sys.executable, *command)
    editor = Editor(client, tmp_path)
    await editor.initialize(client=capabilities(pull=True), options={"settings": {"diagnosticMode": "workspace"}})
    (report,) = await pull(editor)
    assert len(report.items) == 1
    assert len((await editor.pull(editor.open(tmp_path / "one.py"))).items) == 1
    await editor.leave()
