"""Every rewrite is documented in one way; the pages in docs/rewrites are those that the docstrings make."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms import document, rewrites
from graphmend.transforms.catalogue import CATALOGUE
from graphmend.transforms.fix import Refusal
from graphmend.transforms.mend import mend, mend_all


@pytest.mark.parametrize("name", sorted(document.documented()))
def test_headings(name: str) -> None:
    summary, sections = document.sections(document.documented()[name])
    assert summary
    assert tuple(sections) == document.HEADINGS
    assert all(sections.values())


def test_every_file_of_the_folder_is_listed() -> None:
    files = {path.stem for path in Path(rewrites.__file__).parent.glob("*/*.py")} - {"__init__"}
    assert set(document.documented()) == files


def test_codes_are_unique() -> None:
    codes = [code for code, _ in CATALOGUE]
    assert len(codes) == len(set(codes))


def test_pages_are_current(root: Path) -> None:
    folder = root / "docs" / "rewrites"
    made = document.pages()
    assert {p.name for p in folder.iterdir()} == set(made)
    stale = [name for name, text in made.items() if (folder / name).read_text(encoding="utf-8") != text]
    assert not stale, "run `python docs/generate.py`"


def test_what_stands_in_no_function_has_no_mend() -> None:
    text = "import torch\ntable = [lambda x: x if x.any() else -x]\n@torch.compile\ndef f(x):\n    return table[0](x)\n"
    result = check(Source(text))
    (finding,) = result.findings
    assert finding.span.line == 2
    assert all(isinstance(answer, Refusal) for answer in mend(finding, result.facts(finding)))
    mended = mend_all(Source(text), unsafe=True)
    assert mended.source.text == text
    assert len(mended.left) == 1
