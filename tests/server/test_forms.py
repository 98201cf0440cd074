"""The editor says of every compile site what the command says, whichever files of the program are open."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from graphmend.cli.main import main

from ..analysis.test_compile_sites import FORMS
from .editor import Editor

pytestmark = [pytest.mark.asyncio, pytest.mark.many]

_SEVERITIES = {1: "error", 2: "warning", 3: "information", 4: "hint"}
Findings = list[tuple[int, str, str]]


def said_by_the_command(folder: Path) -> dict[str, Findings]:
    """Line, code and severity of the findings of a folder, by file."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(["check", "--output-format", "json", "--isolated", "--no-cache", "--quiet", "-j", "1", str(folder)])
    found: dict[str, Findings] = {}
    for finding in json.loads(printed.getvalue()):
        path = str(Path(finding["filename"]).relative_to(folder))
        found.setdefault(path, []).append((finding["location"]["row"], finding["code"], finding["severity"]))
    return found


async def said_by_the_editor(editor: Editor, uri: str) -> Findings:
    return sorted(
        (d.range.start.line + 1, str(d.code), _SEVERITIES[int(d.severity or 0)]) for d in await editor.diagnostics(uri)
    )


@pytest.mark.parametrize("kind", dict.fromkeys(form.kind for form in FORMS))
async def test_the_editor_agrees_with_the_command(kind: str, editor: Editor, tmp_path: Path) -> None:
    """One server for the forms of a kind, each a program in a folder of its own."""
    for number, form in enumerate(form for form in FORMS if form.kind == kind):
        folder = tmp_path / str(number)
        for path, text in form.files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        expected = said_by_the_command(folder)
        for path, text in reversed(form.files.items()):  # what is compiled before those who compile it
            said = await said_by_the_editor(editor, editor.open(folder / path, text))
            assert said == sorted(expected.get(path, [])), f"{form.name}: {path}"
