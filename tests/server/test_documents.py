"""Documents as they are opened, edited, saved and closed; diagnostics pushed and pulled."""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import Editor, capabilities

pytestmark = pytest.mark.asyncio

TERNARY = "y.sum() > 0"


async def test_a_break_is_shown_where_it_is(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    ternary, branch = await editor.diagnostics(uri)
    assert editor.marked(uri, ternary) == TERNARY
    assert editor.marked(uri, branch) == "z.max() > 3"
    assert ternary.source == "graphmend"
    assert str(ternary.code).startswith("GM1")
    assert ternary.code_description is not None
    assert ternary.severity == types.DiagnosticSeverity.Information


async def test_a_compile_site_makes_it_a_warning(editor: Editor, module: Path) -> None:
    uri = editor.open(module, module.read_text("utf-8") + "\n\nnet = torch.compile(Net())\n")
    assert {d.severity for d in await editor.diagnostics(uri)} == {types.DiagnosticSeverity.Warning}


async def test_each_edit_is_answered_for_its_version(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    assert len(await editor.diagnostics(uri)) == 2
    editor.replace(uri, TERNARY, "y.shape[0] > 0")
    (left,) = await editor.diagnostics(uri)
    assert editor.marked(uri, left) == "z.max() > 3"
    editor.replace(uri, "y.shape[0] > 0", "y.mean() > 0")
    assert [editor.marked(uri, d) for d in await editor.diagnostics(uri)] == ["y.mean() > 0", "z.max() > 3"]
    versions = [p.version for p in editor.published]
    assert versions == sorted(versions)


async def test_findings_stay_and_move_while_the_text_does_not_parse(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    await editor.diagnostics(uri)
    editor.replace(uri, "from torch import nn\n", "from torch import nn\n\nx = (\n")
    assert [editor.marked(uri, d) for d in await editor.diagnostics(uri)] == [TERNARY, "z.max() > 3"]


async def test_typing_fast_ends_with_the_newest_version(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    for column, character in enumerate("# typed in one go\n"):
        editor.edit(uri, column, column, character)
    assert len(await editor.diagnostics(uri)) == 2
    versions = [p.version for p in editor.published]
    assert versions == sorted(versions)


async def test_closing_takes_the_diagnostics_away(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    await editor.diagnostics(uri)
    editor.close(uri)
    await editor.until(lambda: not editor.published[-1].diagnostics)


async def test_a_whole_new_text_is_a_change_too(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    await editor.diagnostics(uri)
    editor.texts[uri] = "\n" + editor.texts[uri]
    editor.change(uri, types.TextDocumentContentChangeWholeDocument(editor.texts[uri]))
    assert [editor.marked(uri, d) for d in await editor.diagnostics(uri)] == [TERNARY, "z.max() > 3"]


async def test_pulling_and_pushing_show_the_same(start: Start, module: Path) -> None:
    pushed, pulling = await start(), await start(client=capabilities(pull=True))
    uri = pushed.open(module)
    pulling.open(module)
    report = await pulling.pull(uri)
    assert list(report.items) == await pushed.diagnostics(uri)
    assert pulling.published == []


async def test_a_pull_with_the_last_result_is_answered_with_unchanged(pulling: Editor, module: Path) -> None:
    uri = pulling.open(module)
    first = await pulling.pull(uri)
    again = await pulling.pull(uri, first.result_id)
    assert isinstance(again, types.RelatedUnchangedDocumentDiagnosticReport)
    pulling.edit(uri, 0, 0, "\n")
    assert isinstance(await pulling.pull(uri, first.result_id), types.RelatedFullDocumentDiagnosticReport)


async def test_run_on_save_waits_for_the_save(start: Start, module: Path) -> None:
    editor = await start(options={"settings": {"run": "onSave"}})
    uri = editor.open(module)
    assert len(await editor.diagnostics(uri)) == 2
    editor.replace(uri, TERNARY, "True")
    assert len(await editor.diagnostics(uri)) == 1  # the finding under the edit is gone, the other one stays
    editor.replace(uri, "z.max() > 3", "z.min() > 3")
    assert await editor.diagnostics(uri) == []
    editor.save(uri)
    await editor.until(lambda: len(editor.published[-1].diagnostics) == 1)
