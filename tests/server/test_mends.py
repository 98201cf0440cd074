"""Mending from the editor: actions with and without resolve, all of a file, ignoring, commands, hovers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lsprotocol import types

from .conftest import Start
from .editor import Editor, capabilities

pytestmark = pytest.mark.asyncio

BRANCH = "z.max() > 3"
MENDED = "z = torch.where(z.max() > 3, z + 1, z * 2)"


def mends(actions: list[types.CodeAction]) -> list[types.CodeAction]:
    return [action for action in actions if action.title.startswith("Mend graph break: ")]


async def test_a_mend_is_resolved_when_it_is_chosen(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    mend = mends(await editor.actions(uri, editor.at(uri, BRANCH)))[0]
    assert (mend.kind, mend.is_preferred, mend.edit) == (types.CodeActionKind.QuickFix, True, None)
    resolved = await editor.client.code_action_resolve_async(mend)
    before = editor.texts[uri]
    editor.apply(resolved.edit)
    after = editor.texts[uri]
    assert MENDED in after
    assert after.split("z = torch.where")[0] == before.split("if z.max()")[0]
    assert len(await editor.diagnostics(uri)) == 1


async def test_an_unsafe_mend_is_confirmed_together_with_its_import(start: Start, tmp_path: Path) -> None:
    """A preview shows a box to tick for each edit: code without its import must be none of the ways to tick them."""
    path = tmp_path / "gate.py"
    branch = "if x.mean() > 0:\n        x = x.sqrt()"
    head = "from torch import Tensor, compile\n\n# é𝔘\n@compile\ndef gate(x: Tensor):\n"
    path.write_text(f"{head}    {branch}\n    return x\n", encoding="utf-8")
    client = capabilities()
    client.workspace.workspace_edit.change_annotation_support = types.ChangeAnnotationsSupportOptions()
    editor = await start(client=client)
    uri = editor.open(path)
    mend = mends(await editor.actions(uri, editor.at(uri, "x.mean() > 0")))[0]
    edit = (await editor.client.code_action_resolve_async(mend)).edit
    assert [len(change.edits) for change in edit.document_changes] == [1]
    assert edit.change_annotations["unsafe"].needs_confirmation
    editor.apply(edit)
    body = "    condition = x.mean() > 0\n    x = torch.where(condition, torch.where(condition, x, 1).sqrt(), x)\n"
    assert editor.texts[uri] == head.replace("compile\n", "compile\nimport torch\n", 1) + body + "    return x\n"


async def test_a_client_without_resolve_gets_the_edit_at_once(start: Start, module: Path) -> None:
    editor = await start(client=capabilities(resolve=False, versioned=False))
    uri = editor.open(module)
    mend = mends(await editor.actions(uri, editor.at(uri, BRANCH)))[0]
    assert mend.edit is not None
    assert mend.edit.document_changes is None
    editor.apply(mend.edit)
    assert MENDED in editor.texts[uri]


async def test_a_client_without_literals_gets_commands(start: Start, module: Path) -> None:
    editor = await start(client=capabilities(literals=False, resolve=False))
    uri = editor.open(module)
    command = (await editor.actions(uri, editor.at(uri, BRANCH)))[0]
    assert isinstance(command, types.Command)
    assert await editor.execute(command.command, *command.arguments)
    assert MENDED in editor.texts[uri]


async def test_an_edit_made_since_is_taken_in_when_resolving(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    mend = mends(await editor.actions(uri, editor.at(uri, BRANCH)))[0]
    editor.edit(uri, 0, 0, "# one line more\n")
    resolved = await editor.client.code_action_resolve_async(mend)
    editor.apply(resolved.edit)
    assert MENDED in editor.texts[uri]


async def test_a_mend_whose_break_is_gone_is_refused(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    mend = mends(await editor.actions(uri, editor.at(uri, BRANCH)))[0]
    editor.replace(uri, BRANCH, "True")
    with pytest.raises(Exception, match="not there any more"):
        await editor.client.code_action_resolve_async(mend)


async def test_all_of_a_file_is_mended_at_once(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    whole = editor.range(editor.texts[uri], 0, 0)
    (action,) = await editor.actions(uri, whole, only=["source.fixAll"])
    assert action.kind == "source.fixAll.graphmend"
    resolved = await editor.client.code_action_resolve_async(action)
    editor.apply(resolved.edit)
    assert await editor.diagnostics(uri) == []
    assert "é\U0001d4b3" in editor.texts[uri]


async def test_the_command_mends_all_of_a_file(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    assert await editor.execute("graphmend.mendFile", uri)
    assert await editor.diagnostics(uri) == []
    assert not await editor.execute("graphmend.mendFile", uri)


async def test_fix_all_is_not_offered_among_quick_fixes(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    kinds = {action.kind for action in await editor.actions(uri, editor.at(uri, BRANCH), only=["quickfix"])}
    assert kinds == {types.CodeActionKind.QuickFix}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("        if z.max() > 3:", "        if z.max() > 3:  # graphmend: ignore[GM101]", id="plain"),
        pytest.param("if z.max() > 3:  # why", "if z.max() > 3:  # why  # graphmend: ignore[GM101]", id="comment"),
        pytest.param(
            "if z.max() > 3:  # graphmend: ignore[GM301]",
            "if z.max() > 3:  # graphmend: ignore[GM301, GM101]",
            id="another-code",
        ),
        pytest.param("if z.max() > \\\n  3:", "if z.max() > \\\n  3:  # graphmend: ignore[GM101]", id="backslash"),
    ],
)
async def test_a_finding_is_ignored_on_its_line(editor: Editor, module: Path, before: str, after: str) -> None:
    text = module.read_text("utf-8").replace("        if z.max() > 3:", "        " + before.lstrip())
    uri = editor.open(module, text)
    actions = await editor.actions(uri, editor.at(uri, "z.max()"))
    ignore = next(action for action in actions if action.title == "Ignore GM101 on this line")
    editor.apply(ignore.edit)
    assert after.lstrip() in editor.texts[uri]
    assert "GM101" not in [d.code for d in await editor.diagnostics(uri) if "z.max" in editor.marked(uri, d)]


async def test_a_hover_gives_evidence_advice_and_the_breaks_id(editor: Editor, module: Path) -> None:
    uri = editor.open(module)
    text = await editor.hover(uri, editor.at(uri, BRANCH).start)
    assert text is not None
    assert "z.max() returns a Tensor" in text
    assert "torch.where" in text
    assert "GB0170" in text
    assert text.index("split here") < text.index("torch.where") < text.index("z.max() returns a Tensor")
    assert await editor.hover(uri, types.Position(0, 0)) is None


async def test_a_rule_is_explained(editor: Editor) -> None:
    text = await editor.execute("graphmend.explain", "GM101")
    assert "## Why it breaks\n\n" in text
    assert re.search(r"## Example\n\n```python\n.+?\n```\n\n## Use instead\n\n```python\n", text, re.DOTALL)
    for code in ("GM001", "GM901"):  # what is shown can be explained, whoever found it
        assert "## What it does" in await editor.execute("graphmend.explain", code)
    with pytest.raises(Exception, match="GM999"):
        await editor.execute("graphmend.explain", "GM999")


async def test_accepted_differences_are_preferred_and_shown(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "total.py"
    path.write_text(
        "import torch\n\n\n@torch.compile\ndef total(x: torch.Tensor):\n    return x[x > 0].sum()\n", encoding="utf-8"
    )
    for accept, title in (
        ([], "reduce all elements under the mask (unsafe)"),
        (["rounding"], "reduce all elements under the mask"),
    ):
        editor = await start(options={"settings": {"accept": accept}})
        uri = editor.open(path)
        mend = mends(await editor.actions(uri, editor.at(uri, "x[x > 0]")))[0]
        assert mend.title == f"Mend graph break: {title}"
        assert bool(mend.is_preferred) is bool(accept)
        text = await editor.hover(uri, editor.at(uri, "x[x > 0]").start)
        assert text is not None
        assert f"({'accepted' if accept else 'unsafe'}: sums may round differently" in text
        await editor.execute("graphmend.mendFile", uri)
        assert ("torch.where" in editor.texts[uri]) is bool(accept)


PRINTS = """\
#!/usr/bin/env python
# -*- coding: utf-8 -*-
import torch


@torch.compile
def f(x: torch.Tensor):
    print("one", x)
    print("two", x)
    if x.sum() > 0:
        x = x + 1
    return x
"""


async def test_all_findings_of_a_rule_are_mended_or_ignored(editor: Editor, module: Path) -> None:
    uri = editor.open(module, PRINTS)
    actions = {action.title: action for action in await editor.actions(uri, editor.at(uri, 'print("one", x)'))}
    mend = await editor.client.code_action_resolve_async(actions["Mend all GM201 that can be mended safely"])
    editor.apply(mend.edit)
    assert editor.texts[uri].count("    emit(print, ") == 2
    assert [d.code for d in await editor.diagnostics(uri)] == ["GM101"]
    uri = editor.open(module.with_name("other.py"), PRINTS)
    actions = {action.title: action for action in await editor.actions(uri, editor.at(uri, 'print("one", x)'))}
    editor.apply(actions["Ignore GM201 in this file"].edit)
    head = "#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n"
    assert editor.texts[uri].startswith(f"{head}# graphmend: ignore-file[GM201]\n")
    assert [d.code for d in await editor.diagnostics(uri)] == ["GM101"]
    actions = {action.title: action for action in await editor.actions(uri, editor.at(uri, "x.sum() > 0"))}
    assert "Mend all GM101 that can be mended safely" not in actions, "it is the only one"
    editor.apply(actions["Ignore GM101 in this file"].edit)
    assert "# graphmend: ignore-file[GM201, GM101]\n" in editor.texts[uri]
    assert await editor.diagnostics(uri) == []


async def test_a_rule_is_explained_by_the_clients_own_command(start: Start, module: Path) -> None:
    client = capabilities()
    client.experimental = {"graphmend": {"checked": True, "explainCommand": "graphmend.explainRule"}}
    editor = await start(client=client)
    uri = editor.open(module)
    actions = {action.title: action for action in await editor.actions(uri, editor.at(uri, BRANCH))}
    command = actions["Explain GM101"].command
    assert (command.command, list(command.arguments)) == ("graphmend.explainRule", ["GM101"])


async def test_an_untrusted_workspace_is_told_of_once(start: Start, module: Path) -> None:
    for manages, told in ((True, 0), (False, 1)):
        client = capabilities()
        client.experimental = {"graphmend": {"checked": True, "managesTrust": manages}}
        editor = await start(client=client)
        uri = editor.open(module)
        outcome = await editor.execute("graphmend.verify", uri)
        assert outcome["status"] == "refused"
        assert len([said for said in editor.shown if "trust" in said]) == told


async def test_what_is_compiled_anew_is_mended_as_such(start: Start, tmp_path: Path) -> None:
    path = tmp_path / "schedule.py"
    path.write_text(
        "import torch\n\n\n@torch.compile\ndef step(p, rate):\n    return p - rate\n\n\n"
        "def train():\n    for i in range(4):\n        step(torch.ones(4), 0.5 * i)\n"
    )
    editor = await start()
    uri = editor.open(path)
    (diagnostic,) = await editor.diagnostics(uri)
    assert diagnostic.severity == types.DiagnosticSeverity.Information
    explained = await editor.hover(uri, diagnostic.range.start)
    assert "varying-argument**: compiled again for another value." in explained
    assert "the guard that fails: rate == 0.0" in explained
    assert "- mend: pass `rate` as a 0-d tensor" in explained
    actions = await editor.actions(uri, diagnostic.range)
    mend, dynamic = [action for action in actions if action.title.startswith("Mend recompilation: ")]
    assert mend.title == "Mend recompilation: pass `rate` as a 0-d tensor"
    assert mend.is_preferred
    assert not dynamic.is_preferred
    resolved = await editor.client.code_action_resolve_async(mend)
    editor.apply(resolved.edit)
    assert "step(torch.ones(4), torch.tensor(0.5 * i, dtype=torch.float64))" in editor.texts[uri]
    assert not await editor.diagnostics(uri)
