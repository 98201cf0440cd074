"""`docs/torch-versions.md` is made from what was measured, and names every supported version."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from graphmend.analysis.torch_facts import load, versions


def test_the_page_is_fresh(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    page = importlib.import_module("bench.versions.page")
    shown = (root / "docs" / "torch-versions.md").read_text("utf-8")
    assert shown == page.render(page.load()), 'run `make versions VERSIONS="..."`'
    assert page.minors() == list(reversed(versions()))
    for minor in page.minors():
        assert any(line.startswith(f"| {minor}") for line in shown.splitlines())


def test_a_call_that_an_older_torch_breaks_at_is_refused_with_it_alone() -> None:
    old, new = load("2.10"), load("2.13")
    assert old.refusal("torch.quantile") == "GB0033"
    assert "torch 2.10 breaks there" in (old.refusal_reason("torch.quantile") or "")
    assert new.refusal("torch.quantile") is None
    assert old.refusal("torch.Tensor.register_hook") == "GB0029"
    assert old.refusal("torch.Tensor.register_hook", "input") is None


def test_every_measured_file_is_of_a_known_version(root: Path) -> None:
    for path in (root / "analysis" / "torch_facts").glob("calls-*.json"):
        assert path.stem.removeprefix("calls-") in versions()
        assert json.loads(path.read_text("utf-8"))["measured"] > 1000
