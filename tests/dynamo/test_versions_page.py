"""`docs/torch-versions.md` is made from what was measured, and names every supported version."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.settings import Settings
from graphmend.analysis.syntax.source import Source
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


FORMS = {
    "a tensor == None": "    if x == None:\n        return x\n",
    "an attribute set on a class": "    Plain.size = 4\n",
    "the length of a __dict__": "    n = len(plain.__dict__)\n",
    "sys.version_info > a tuple": "    n = sys.version_info >= (3, 8)\n",
    "a tensor in list.remove": "    [x, k].remove(x)\n",
    "a deep copy of a container": "    n = copy.deepcopy([1, 2])\n",
    "a size indexed by a tensor": "    n = x.shape[k]\n",
}
PROGRAM = """\
import copy, sys
import torch
class Plain:
    size = 3
plain = Plain()
@torch.compile
def f(x: torch.Tensor, k: torch.Tensor):
{body}    return x + 1
"""


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_found_where_a_version_breaks_at_it(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a version does is measured; here each answer is given, and the check has to follow it."""
    facts = load("2.10")

    def lines(answer: list[str] | None) -> set[int]:
        monkeypatch.setattr(facts, "_forms", {form: answer})
        source = Source(PROGRAM.format(body=FORMS[form]), "m.py")
        return {finding.span.line for finding in check(source, settings=Settings(torch_version="2.10")).findings}

    assert lines(["GB0059", "not traced"]) - lines(None) == {8}


def test_every_form_is_measured_and_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(root), *sys.path])
    measured = importlib.import_module("bench.versions.forms").FORMS
    assert set(measured) == set(FORMS)
    for version in versions():
        assert set(load(version)._forms) <= set(measured)
    assert not load(versions()[-1])._forms
