"""Notebooks are checked and mended as files are: cells are the places, and nothing but changed cells changes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

PICTURE = base64.b64encode(bytes(range(256)) * 40).decode()
BREAKS = """\
%%time
@torch.compile
def f(x):
    print('é', x.sum())
    if x.sum() > 0:
        return x + 1
    return x - 1"""
CELLS: list[tuple[str, str]] = [
    ("markdown", "# Notes\nprint(x)"),
    ("code", "%matplotlib inline\n!pip list\nimport os\nimport torch\nfiles = !ls"),
    ("code", ""),
    ("code", "%%bash\necho 'é' $HOME"),
    ("code", BREAKS),
    ("raw", "raw"),
    ("code", "f?\nf(torch.ones(3))"),
]


def notebook(cells: list[tuple[str, str]] = CELLS, indent: int = 1, as_text: bool = False, **metadata: Any) -> str:
    """A notebook as Jupyter writes it."""
    made = []
    for kind, source in cells:
        cell: dict[str, Any] = {
            "cell_type": kind,
            "metadata": {},
            "source": source if as_text else source.splitlines(True),
        }
        if kind == "code":
            outputs = [
                {"output_type": "display_data", "data": {"image/png": PICTURE, "text/plain": ["a \\"]}, "metadata": {}}
            ]
            cell |= {"execution_count": None, "outputs": outputs}
        made.append(cell)
    about = {"language_info": {"name": "python"}, **metadata}
    document = {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"


def sources(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"]]


def places(out: str) -> list[tuple[str, int, int, int]]:
    return [(i["code"], i["cell"], i["location"]["row"], i["location"]["column"]) for i in json.loads(out)]


def test_findings_are_told_by_cell(run: Run, folder: Path) -> None:
    (folder / "nb.ipynb").write_text(notebook(), "utf-8")
    outcome = run("check", ".", "--output-format", "json")
    assert outcome.status == 1
    assert places(outcome.out) == [("GM201", 5, 4, 5), ("GM101", 5, 5, 8)]
    out = run("check", "nb.ipynb", "--output-format", "concise").out
    assert out.startswith("nb.ipynb:cell 5:4:5: GM201 ")
    out = run("check", "nb.ipynb").out
    assert "--> nb.ipynb:cell 5:4:5  in f (compiled)\n4 |     print('é', x.sum())\n  |     ^^^^" in out


@pytest.mark.parametrize("options", [{}, {"indent": 4}, {"as_text": True}])
def test_only_the_source_of_changed_cells_changes(run: Run, folder: Path, options: dict[str, Any]) -> None:
    before = notebook(**options)
    (folder / "nb.ipynb").write_text(before, "utf-8")
    assert "+    emit(print, 'é', x.sum())" in run("check", "--diff", "nb.ipynb").out
    assert (folder / "nb.ipynb").read_text("utf-8") == before
    run("check", "--fix", "nb.ipynb")
    after = (folder / "nb.ipynb").read_text("utf-8")
    old, new = sources(before), sources(after)
    assert [number for number, (a, b) in enumerate(zip(old, new, strict=True), 1) if a != b] == [2, 5]
    assert "emit(print, 'é', x.sum())" in new[4]
    assert new[4].startswith("%%time\n@torch.compile\n")
    assert "from graphmend.runtime import emit" in new[1]
    assert new[1].startswith("%matplotlib inline\n!pip list\nimport os\n")
    assert new[1].endswith("\nfiles = !ls")
    whole = json.loads(before)
    for cell, source in zip(whole["cells"], new, strict=True):
        cell["source"] = source if options.get("as_text") else source.splitlines(True)
    assert after == json.dumps(whole, indent=options.get("indent", 1), ensure_ascii=False) + "\n"
    assert "Made" not in run("check", "--fix", "nb.ipynb").out


def test_escapes_and_line_ends_of_the_notebook_stay(run: Run, folder: Path) -> None:
    before = json.dumps(json.loads(notebook()), indent=1).replace("\n", "\r\n").encode()
    (folder / "nb.ipynb").write_bytes(before)
    run("check", "--fix", "nb.ipynb")
    after = (folder / "nb.ipynb").read_bytes()
    assert after != before
    assert after.isascii()
    assert b"\n" not in after.replace(b"\r\n", b"")


def test_standard_input_is_a_notebook_where_its_name_says_so(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import io
    import sys

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(notebook().encode())))
    out = run("check", "-", "--stdin-filename", "nb.ipynb", "--output-format", "json").out
    assert places(out) == [("GM201", 5, 4, 5), ("GM101", 5, 5, 8)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "is no notebook"),
        ("[]", "is no notebook of version 4"),
        ('{"worksheets": []}', "is no notebook of version 4"),
        ("[" * 100_000, "is no notebook"),
    ],
)
def test_what_is_no_notebook_is_one_line(run: Run, folder: Path, text: str, complaint: str) -> None:
    (folder / "nb.ipynb").write_text(text)
    outcome = run("check", "nb.ipynb")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert complaint in outcome.err


def test_other_languages_and_broken_cells(run: Run, folder: Path) -> None:
    (folder / "r.ipynb").write_text(notebook([("code", "x <- 1")], language_info={"name": "R"}))
    (folder / "broken.ipynb").write_text(notebook([("code", "import torch"), ("code", "def ("), CELLS[4]]), "utf-8")
    (folder / "odd.ipynb").write_text('{"cells": [1, {"cell_type": "code"}, {"cell_type": "code", "source": 3}]}')
    outcome = run("check", ".", "--output-format", "json")
    assert places(outcome.out) == [("GM201", 3, 4, 5), ("GM101", 3, 5, 8)]
    assert outcome.err.count("cell 2 does not parse, and is left out") == 1


def test_a_comment_takes_a_finding_back(run: Run, folder: Path) -> None:
    cells = [(kind, source.replace("x.sum())", "x.sum())  # graphmend: ignore[GM201]")) for kind, source in CELLS]
    (folder / "nb.ipynb").write_text(notebook(cells), "utf-8")
    assert places(run("check", "nb.ipynb", "--output-format", "json").out) == [("GM101", 5, 5, 8)]


@pytest.mark.torch
def test_a_notebook_is_verified_without_its_training(run: Run, folder: Path) -> None:
    module = "class Net(torch.nn.Module):\n    def forward(self, x: torch.Tensor):\n        print(x.sum())\n"
    module += "        return x + 1"
    loop = "for _ in range(3):\n    raise SystemExit('trained')\nopen('ran', 'w')"
    text = notebook([CELLS[0], CELLS[1], ("code", module), ("code", loop)])
    (folder / "nb.ipynb").write_text(text, "utf-8")
    outcome = run("verify", "nb.ipynb:Net", "--device", "cpu")
    assert outcome.status == 1, outcome.err
    assert "  nb.ipynb:cell 3:3:9: GB0059 " in outcome.out
    assert "1 of 1 findings confirmed" in outcome.out
    assert not (folder / "ran").exists()
    assert (folder / "nb.ipynb").read_text("utf-8") == text
