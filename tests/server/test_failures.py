"""A failure inside the analysis: logged once with what reproduces it, shown once, and no other document suffers."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from graphmend.server import app
from graphmend.server.lsp.client import ClientHandler

from .editor import Editor, new_client

pytestmark = pytest.mark.asyncio

FAILING = """
import pathlib, sys, time
from graphmend.analysis.check import check as real
from graphmend.server import app, main

def check(source, project, settings):
    if "FAIL" in source.text:
        pathlib.Path(source.path + ".begun").touch()
        while not pathlib.Path(source.path + ".go").exists():
            time.sleep(0.01)
        raise RuntimeError("as the test wants it")
    return real(source, project, settings)

create = app.create
app.create = lambda: create(check)
sys.exit(main.serve_stdio())
"""


async def test_one_documents_failure_stays_its_own(tmp_path: Path, module: Path) -> None:
    client = new_client()
    await client.start_io(sys.executable, "-c", FAILING)
    editor = Editor(client, tmp_path)
    await editor.initialize()
    bad = editor.open(tmp_path / "bad.py", "import torch  # FAIL\n")
    await editor.until((tmp_path / "bad.py.begun").exists)
    editor.edit(bad, 0, 0, "# edited while the text before is looked at\n")
    assert await editor.lenses("file:///not-open.py") == []  # so the server has the edit
    (tmp_path / "bad.py.go").touch()
    assert await editor.diagnostics(bad) == []
    for _ in range(3):
        editor.edit(bad, 0, 0, "\n")
        assert await editor.diagnostics(bad) == []
    assert len(await editor.diagnostics(editor.open(module))) == 2
    (message,) = editor.shown
    (logged,) = (line for line in editor.logged if "as the test wants it" in line)
    assert "bad.py" in message
    kept = Path(logged.partition("its text is in ")[2].splitlines()[0])
    assert kept.read_text() == "import torch  # FAIL\n"
    kept.unlink()
    await editor.leave()


FAILING_WALK = """
import ast, sys
from graphmend.analysis.interprocedural.session import AnalysisSession
from graphmend.server import main

walk = AnalysisSession.walk

def failing(self, summary):
    if "FAIL" in ast.unparse(summary.info.node):
        raise RuntimeError("in the midst of an edit")
    walk(self, summary)

AnalysisSession.walk = failing
sys.exit(main.serve_stdio())
"""


async def test_after_a_failure_in_the_midst_of_an_edit_the_next_text_is_seen_anew(tmp_path: Path, module: Path) -> None:
    client = new_client()
    await client.start_io(sys.executable, "-c", FAILING_WALK)
    editor = Editor(client, tmp_path)
    await editor.initialize()
    uri = editor.open(module)
    before = await editor.diagnostics(uri)
    assert len(before) == 2
    editor.replace(uri, "y = self.linear(x)\n", "y = self.linear(x)\n        FAIL = 1\n")
    assert await editor.diagnostics(uri) == []
    editor.replace(uri, "        FAIL = 1\n", "")
    assert await editor.diagnostics(uri) == before
    (logged,) = (line for line in editor.logged if "in the midst of an edit" in line)
    Path(logged.partition("its text is in ")[2].splitlines()[0]).unlink()
    await editor.leave()


async def test_a_write_that_fails_is_not_told_to_the_client(capsys: pytest.CaptureFixture[str]) -> None:
    """Telling would be another write that fails, and so on without end."""

    class Gone:
        writes = 0

        def write(self, data: bytes) -> None:
            self.writes += 1
            raise ConnectionResetError("gone")

        def close(self) -> None:
            pass

    gone = Gone()
    server, _ = app.create()
    server.protocol.set_writer(gone)
    handler = ClientHandler(server, asyncio.get_running_loop().call_soon_threadsafe)
    log = logging.getLogger("graphmend")
    log.addHandler(handler)
    try:
        server.protocol.receive(b"not JSON")
        for _ in range(5):
            await asyncio.sleep(0)
    finally:
        log.removeHandler(handler)
    assert "the client cannot be written to: gone" in capsys.readouterr().err
    assert gone.writes == 2  # the answer, and the warning that was logged before
