"""Every rewrite is documented in one way; the pages in docs/rewrites are those that the docstrings make."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphmend.transforms import document
from graphmend.transforms.catalogue import CATALOGUE

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", sorted(document.documented()))
def test_headings(name: str) -> None:
    summary, sections = document.sections(document.documented()[name])
    assert summary
    assert tuple(sections) == document.HEADINGS
    assert all(sections.values())


def test_codes_are_unique() -> None:
    codes = [code for code, _ in CATALOGUE]
    assert len(codes) == len(set(codes))


def test_pages_are_current(root: Path) -> None:
    folder = root / "docs" / "rewrites"
    made = document.pages()
    assert {p.name for p in folder.iterdir()} == set(made)
    stale = [name for name, text in made.items() if (folder / name).read_text(encoding="utf-8") != text]
    assert not stale, "run python -m graphmend.transforms.document docs/rewrites"


def test_torch_names_exist() -> None:
    from graphmend.transforms import torch_names as known

    places = (torch, torch.Tensor, torch.nn.functional, torch.special, torch.random)
    for names in (
        known.RANDOM,
        known.ELEMENTWISE,
        known.ARITHMETIC,
        known.TESTS,
        known.REDUCTIONS,
        known.CASTS,
        known.LOSSES,
    ):
        assert not [n for n in names if not any(hasattr(p, n) for p in places)]
    assert not [n for n in known.LAYERS if not hasattr(torch.nn, n.rpartition(".")[2])]
