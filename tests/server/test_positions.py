"""Columns and lines, in the encodings that editors use, over characters and line ends that they meet."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import capabilities

pytestmark = pytest.mark.asyncio

BRANCH = "x.sum() > 0"
BODY = "import torch\n\n\n@torch.compile\ndef f(x):\n    {before}{branch}\n    return y\n"


def text(before: str, line_end: str = "\n") -> str:
    branch = f"y = x + 1 if {BRANCH} else x * 2"
    return BODY.format(before=before, branch=branch).replace("\n", line_end)


TEXTS = [
    pytest.param(text(""), id="ascii"),
    pytest.param(text("'é'; "), id="two-bytes"),
    pytest.param(text("'☃'; "), id="three-bytes"),
    pytest.param(text("'\U0001d4b3\U0001f525'; "), id="astral"),
    pytest.param(text("'e\u0301\u200d'; "), id="combining"),
    pytest.param(text("'\t'; "), id="tab"),
    pytest.param(text("'\u2028\x85'; "), id="separators-that-end-no-line"),
    pytest.param("\f" + text("'é'; "), id="form-feed"),
    pytest.param("\ufeff" + text("'é'; "), id="byte-order-mark"),
    pytest.param(text("'é'; ", "\r\n"), id="CRLF"),
    pytest.param(text("'é'; ", "\r"), id="lone-CR"),
    pytest.param(text("'é'; ").rstrip(), id="no-newline-at-the-end"),
    pytest.param(text(f"'{'é' * 20_000}'; "), id="long-line"),
]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-32"])
@pytest.mark.parametrize("source", TEXTS)
async def test_a_break_is_marked_and_mended_where_it_is(
    start: Start, tmp_path: Path, encoding: str, source: str
) -> None:
    editor = await start(client=capabilities(encodings=(encoding,)))
    assert editor.encoding == encoding
    uri = editor.open(tmp_path / "f.py", source)
    (diagnostic,) = await editor.diagnostics(uri)
    begin = source.index(BRANCH)
    assert diagnostic.range == editor.range(source, begin, begin + len(BRANCH))
    mend = (await editor.actions(uri, diagnostic.range))[0]
    resolved = await editor.client.code_action_resolve_async(mend)
    (change,) = resolved.edit.document_changes
    (edit,) = change.edits
    ternary = f"x + 1 if {BRANCH} else x * 2"
    assert edit.range == editor.range(source, source.index(ternary), source.index(ternary) + len(ternary))


async def test_an_editor_that_says_nothing_counts_in_utf_16(start: Start) -> None:
    assert (await start()).encoding == "utf-16"


async def test_columns_past_the_end_of_a_line_mean_its_end(start: Start, tmp_path: Path) -> None:
    editor = await start()
    uri = editor.open(tmp_path / "f.py", text("'é'; "))
    await editor.diagnostics(uri)
    past = types.Range(types.Position(0, 12), types.Position(0, 9999))
    editor.change(uri, types.TextDocumentContentChangePartial(range=past, text="  # end"))
    editor.texts[uri] = editor.texts[uri].replace("import torch\n", "import torch  # end\n", 1)
    (diagnostic,) = await editor.diagnostics(uri)
    assert editor.marked(uri, diagnostic) == BRANCH
    far = types.Range(types.Position(999, 0), types.Position(999, 5))
    editor.change(uri, types.TextDocumentContentChangePartial(range=far, text="\n# behind the last line\n"))
    assert len(await editor.diagnostics(uri)) == 1
    assert await editor.hover(uri, types.Position(999, 999)) is None
