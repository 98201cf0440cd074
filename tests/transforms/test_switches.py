"""Compile-time switches: shown for breaks of the default flags, at the compile site, with bounds; never applied."""

from __future__ import annotations

import sys
import types

import pytest
from judge import edited, mend_text, torch, unbroken

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.mend import mend

SLICE = "    k = n.item()\n    return x[:k] * 2"
SHAPES = "    return x[x > 0] * 2"


def text(body: str, site: str = "@torch.compile") -> str:
    examples = "def example_inputs():\n    return [(torch.ones(3), torch.tensor(2))]\n"
    return f"import torch\n\n\n{site}\ndef case(x, n):\n{body}\n\n\n{examples}"


def shown(source: Source, rewrite: str) -> Fix | None:
    result = check(source)
    fixes = [a for f in result.findings for a in mend(f, result.facts(f)) if isinstance(a, Fix)]
    return next((f for f in fixes if f.rewrite == rewrite), None)


def followed(original: str, rewrite: str) -> str:
    source = Source(original, "model.py")
    fix = shown(source, rewrite)
    assert fix is not None
    assert fix.applicability == "display"
    return edited(fix, source)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("body", "line"),
    [(SLICE, "capture_scalar_outputs = True"), (SHAPES, "capture_dynamic_output_shape_ops = True")],
)
def test_a_switch_stands_above_the_compile_site(body: str, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    after = followed(text(body), "capture_switch")
    assert f"torch._dynamo.config.{line}\n\n\n@torch.compile" in after
    module = types.ModuleType("switched")
    monkeypatch.setitem(sys.modules, module.__name__, module)  # torch 2.12 imports the module of what it inlines
    torch._dynamo.reset()
    with torch._dynamo.config.patch(capture_scalar_outputs=False, capture_dynamic_output_shape_ops=False):
        exec(
            compile(after.replace("@torch.compile", "@torch.compile(backend='eager')"), "model.py", "exec"),
            vars(module),
        )
        with unbroken():
            got = module.case(torch.ones(3), torch.tensor(2))
    torch.testing.assert_close(got, torch.full((2 if "item" in body else 3,), 2.0))


def test_the_uses_of_a_number_are_bounded() -> None:
    after = followed(text(SLICE), "capture_switch")
    assert "    torch._check(k >= 0)\n    torch._check(k <= x.shape[0])\n    return" in after


@pytest.mark.parametrize(
    ("site", "after"),
    [
        ("@torch.compile", "@torch.compile(fullgraph=True)\n"),
        ("@torch.compile()", "@torch.compile(fullgraph=True)\n"),
        ("@torch.compile(dynamic=True)", "@torch.compile(dynamic=True, fullgraph=True)\n"),
    ],
)
def test_the_compile_call_gets_fullgraph(site: str, after: str) -> None:
    assert after in followed(text(SHAPES, site), "fullgraph")


@pytest.mark.parametrize(
    "original",
    [
        text(SHAPES, "@torch.compile(fullgraph=True)"),
        text("    return x[x.argmax()]"),
        text(SHAPES).replace("@torch.compile\n", ""),
    ],
)
def test_nothing_is_shown_where_it_would_not_help(original: str) -> None:
    assert shown(Source(original, "model.py"), "fullgraph") is None


def test_a_switch_that_is_on_is_not_shown_again() -> None:
    again = followed(text(SHAPES), "capture_switch")
    assert shown(Source(again, "model.py"), "capture_switch") is None


def test_neither_is_applied() -> None:
    mended = mend_text(text(SHAPES))
    assert not mended.changed
    assert mended.left
