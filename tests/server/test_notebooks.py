"""Notebook cells: one module in their order, documents of their own to the editor."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import Editor, capabilities

pytestmark = pytest.mark.asyncio

IMPORTS = "%matplotlib inline\nimport torch\nfrom torch import nn"
NET = (
    "class Net(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
    "        if x.sum() > 0:\n            x = x + 1\n        else:\n            x = x * 2\n        return x"
)
AT = {"line": 1, "character": 0}
PRINTS = "@torch.compile\ndef f(x):\n    print('é', x)\n    return x"


class NotebookEditor:
    """The part of an editor that knows notebooks."""

    def __init__(self, editor: Editor, path: Path) -> None:
        self.editor = editor
        self.path = path
        self.uri = path.as_uri()
        self.version = 1

    def cell(self, name: str) -> str:
        return f"vscode-notebook-cell:{self.path}#{name}"

    def open(self, **cells: str) -> None:
        items = [self._item(name, text) for name, text in cells.items()]
        order = [self._cell(name) for name in cells]
        notebook = types.NotebookDocument(self.uri, "jupyter-notebook", 1, order)
        self.editor.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(notebook, items))

    def change(self, cells: types.NotebookDocumentCellChanges) -> None:
        self.version += 1
        identifier = types.VersionedNotebookDocumentIdentifier(self.version, self.uri)
        event = types.NotebookDocumentChangeEvent(cells=cells)
        self.editor.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(identifier, event))

    def insert(self, at: int, name: str, text: str, kind: str = "python") -> None:
        array = types.NotebookCellArrayChange(at, 0, [self._cell(name)])
        opened = [self._item(name, text)] if kind == "python" else []
        self.change(types.NotebookDocumentCellChanges(types.NotebookDocumentCellChangeStructure(array, opened)))

    def remove(self, at: int, name: str) -> None:
        array = types.NotebookCellArrayChange(at, 1)
        closed = [types.TextDocumentIdentifier(self.cell(name))]
        structure = types.NotebookDocumentCellChangeStructure(array, did_close=closed)
        self.change(types.NotebookDocumentCellChanges(structure))

    def write(self, name: str, text: str) -> None:
        uri = self.cell(name)
        self.editor.texts[uri] = text
        self.editor.versions[uri] += 1
        identifier = types.VersionedTextDocumentIdentifier(self.editor.versions[uri], uri)
        whole = types.TextDocumentContentChangeWholeDocument(text)
        content = types.NotebookDocumentCellContentChanges(identifier, [whole])
        self.change(types.NotebookDocumentCellChanges(text_content=[content]))

    async def marked(self, name: str) -> list[str]:
        """The texts that are marked in a cell's newest version."""
        uri = self.cell(name)
        return [self.editor.marked(uri, d) for d in await self.editor.diagnostics(uri)]

    async def found(self, name: str) -> list[types.CodeLens]:
        """The lenses of a cell."""
        params = types.CodeLensParams(types.TextDocumentIdentifier(self.cell(name)))
        return list(await self.editor.client.text_document_code_lens_async(params))

    def _cell(self, name: str) -> types.NotebookCell:
        return types.NotebookCell(types.NotebookCellKind.Code, self.cell(name))

    def _item(self, name: str, text: str) -> types.TextDocumentItem:
        uri = self.cell(name)
        self.editor.texts[uri], self.editor.versions[uri] = text, 1
        return types.TextDocumentItem(uri, types.LanguageKind.Python, 1, text)


@pytest.fixture
def notebook(editor: Editor, tmp_path: Path) -> NotebookEditor:
    return NotebookEditor(editor, tmp_path / "book.ipynb")


async def test_findings_stand_in_their_cells_and_names_come_from_those_before(notebook: NotebookEditor) -> None:
    notebook.open(imports=IMPORTS, net=NET, prints=PRINTS)
    assert await notebook.marked("net") == ["x.sum() > 0"]
    assert await notebook.marked("prints") == ["print('é', x)"]
    assert await notebook.marked("imports") == []


async def test_cells_come_change_and_go(notebook: NotebookEditor) -> None:
    editor = notebook.editor
    notebook.open(imports=IMPORTS, net=NET)
    assert await notebook.marked("net") == ["x.sum() > 0"]
    notebook.insert(1, "text", "# heading", kind="markdown")
    notebook.insert(2, "prints", PRINTS)
    assert await notebook.marked("prints") == ["print('é', x)"]
    notebook.write("net", NET.replace("x.sum()", "x.shape[0]"))
    assert await notebook.marked("net") == []
    notebook.remove(0, "imports")
    await editor.until(lambda: not editor.published[-1].diagnostics)


async def test_a_mend_edits_the_cells_it_concerns(notebook: NotebookEditor) -> None:
    editor = notebook.editor
    notebook.open(imports=IMPORTS, net=NET)
    uri = notebook.cell("net")
    actions = await editor.actions(uri, editor.at(uri, "x.sum() > 0"))
    mend = next(action for action in actions if action.title.startswith("Mend graph break"))
    edit = (await editor.client.code_action_resolve_async(mend)).edit
    (change,) = edit.document_changes
    assert change.text_document.uri == uri
    (only,) = change.edits
    begin, end = editor.offsets(NET, only.range)
    assert NET[begin:end].startswith("if x.sum() > 0:")
    assert "torch.where" in only.new_text
    assert await editor.hover(uri, editor.at(uri, "x.sum() > 0").start)


async def test_cells_are_pulled_too(start: Start, tmp_path: Path) -> None:
    notebook = NotebookEditor(await start(client=capabilities(pull=True)), tmp_path / "book.ipynb")
    notebook.open(imports=IMPORTS, shell="%%bash\nls -l", net=NET)
    assert len((await notebook.editor.pull(notebook.cell("net"))).items) == 1
    assert not (await notebook.editor.pull(notebook.cell("shell"))).items


async def test_lenses_stand_over_what_cells_define(notebook: NotebookEditor) -> None:
    notebook.open(imports=IMPORTS, net=NET, prints=PRINTS)
    await notebook.marked("net")
    assert await notebook.editor.lenses(notebook.cell("imports")) == []
    assert await notebook.editor.lenses(notebook.cell("net")) == ["1 graph break - Verify"]
    (lens,) = await notebook.found("prints")
    assert (lens.range.start.line, list(lens.command.arguments)) == (1, [notebook.cell("prints"), AT])


@pytest.mark.torch
async def test_a_cell_s_class_is_checked_and_what_only_runs_is_not_run(start: Start, tmp_path: Path) -> None:
    settings = {"interpreter": sys.executable, "verify": {"device": "cpu"}}
    notebook = NotebookEditor(await start(options={"trusted": True, "settings": settings}), tmp_path / "book.ipynb")
    ran = tmp_path / "ran"
    notebook.open(imports=IMPORTS, net=NET, loop=f"for step in range(3):\n    open({str(ran)!r}, 'w')", prints=PRINTS)
    await notebook.marked("net")
    (lens,) = await notebook.found("net")
    outcome = await notebook.editor.execute(lens.command.command, *lens.command.arguments, patience=120.0)
    assert outcome["status"] == "checked", outcome
    assert [target["name"] for target in outcome["targets"]] == ["Net"]
    assert [item["line"] for item in outcome["breaks"]] == [6]  # of the module that the cells make
    assert not ran.exists()
    titles = await notebook.editor.lenses(notebook.cell("net"))
    assert any("verified on cpu" in title for title in titles), titles
    assert await notebook.editor.lenses(notebook.cell("prints")) == ["1 graph break - Verify"]
    (found,) = await notebook.editor.diagnostics(notebook.cell("net"))
    assert "confirmed by TorchDynamo" in found.message
