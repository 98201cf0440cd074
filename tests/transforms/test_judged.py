"""Mended functions, judged by TorchDynamo and by their outputs: each form of the catalogue, both sides of branches.

The bodies stand in `judged/`, a file a family, each below a comment that names it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bodies import bodies, function
from judge import judge, mend_text, torch

INPUTS = "[(torch.rand(4, 4),)]"
MODULES = "copy functools gc importlib itertools math numpy os random time warnings".split()
HELPER = """
def helper(x):
    global seen
    seen = x
    return x
"""


def family(name: str) -> dict[str, str]:
    return bodies(Path(__file__).with_name("judged").joinpath(f"{name}.txt").read_text("utf-8"))


def families(*names: str) -> Any:
    """A test for each body of some families."""
    named = {f"{name}-{of}": body for name in names for of, body in family(name).items()}
    return pytest.mark.parametrize("body", named.values(), ids=named)


def case(body: str, parameters: str = "x", inputs: str = INPUTS) -> str:
    return f"import {', '.join(MODULES)}\n" + function(body, parameters, inputs)


def both() -> list[tuple[Any, ...]]:
    """Arguments that take both sides of a test of the sign; gradients are asked for."""
    one = torch.rand(4, 4) + 0.1
    return [(one.clone().requires_grad_(),), ((-one).requires_grad_(),)]


def plain() -> list[tuple[Any, ...]]:
    return [(t.detach(),) for (t,) in both()]


def indexed() -> list[tuple[Any, ...]]:
    return [(torch.rand(5, 3), torch.tensor(1)), (torch.rand(5, 3), torch.tensor(0))]


@pytest.mark.torch
@families("branches", "forms", "loops", "guards", "output", "scalars", "shapes")
def test_with_gradients(body: str) -> None:
    judge(case(body), both)


# what `torch.while_loop` runs has no gradient (torch 2.13)
@pytest.mark.torch
@families("output", "python", "while_loops")
def test_without_gradients(body: str) -> None:
    judge(case(body), plain)


@pytest.mark.torch
@families("indices")
def test_index(body: str) -> None:
    judge(case(body, "x, n", "[(torch.rand(5, 3), torch.tensor(1))]"), indexed)


@families("branches", "forms", "loops", "guards", "output", "scalars", "shapes", "python", "while_loops")
def test_mended_once_is_mended_for_good(body: str) -> None:
    mended = mend_text(case(body))
    assert mended.changed
    assert not mend_text(mended.source.text).changed


@families("refused")
def test_refusal(body: str) -> None:
    text = HELPER + case(body)
    mended = mend_text(text)
    assert mended.source.text == text
    assert mended.left
    assert all(reason for _, reason in mended.left)


@pytest.mark.torch
def test_a_gradient_flag_of_what_is_returned_is_set_in_plain_python_only() -> None:
    text = case("    y = x[:, None]\n    y.requires_grad = True\n    y = y * 2\n    return y\n")
    judge(text, plain)
    assert "if not torch.compiler.is_compiling():\n        y.requires_grad = True" in mend_text(text).source.text
