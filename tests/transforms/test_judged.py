"""Mended functions, judged by TorchDynamo and by their outputs: every form of the catalogue, both sides of each branch."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from judge import judge, mend_text  # noqa: E402

HEAD = """\
import copy
import functools
import gc
import importlib
import logging
import math
import os
import random
import time
import warnings

import torch
import torch.nn.functional as F

logger = logging.getLogger("judged")
logger.propagate = False
logger.setLevel("INFO")


@torch.compile
"""


def module(body: str) -> str:
    return HEAD + textwrap.dedent(body).lstrip("\n")


def both() -> list[tuple[Any, ...]]:
    """Arguments that take both sides of a test of the sign; gradients are asked for."""
    one = torch.rand(4, 4) + 0.1
    return [(one.clone().requires_grad_(),), ((-one).requires_grad_(),)]


def plain() -> list[tuple[Any, ...]]:
    return [(t.detach(),) for (t,) in both()]


def integers() -> list[tuple[Any, ...]]:
    return [(torch.tensor([1, 7, 7]), torch.rand(2, 3)), (torch.tensor([7, 1, 7]), torch.rand(2, 3))]


def indexed() -> list[tuple[Any, ...]]:
    return [(torch.rand(5, 3), torch.tensor(1)), (torch.rand(5, 3), torch.tensor(0))]


BRANCHES = {
    "elif": "if x.sum() > 10:\n        x = x + 1\n    elif x.sum() > 0:\n        x = x * 2\n    else:\n        x = x - 1\n    return x * 2",
    "several": "if x.sum() > 0:\n        y, z = x + 1, x * 2\n    else:\n        y = x - 1\n        z = x * 3\n    return y * z",
    "swap": "y = x * 2\n    if x.sum() > 0:\n        x, y = y, x\n    return x - y * 3",
    "nested": "y = x\n    if x.sum() > 0:\n        y = x * 2\n        if x.max() > 0.5:\n            y = y + 1\n    return y * 1",
    "nested_return": "if x.sum() > 0:\n        if x.max() > 0.5:\n            return x + 1\n        else:\n            return x + 2\n    return x * 3",
    "temporary": "if x.sum() > 0:\n        h = x * 2\n        x = h + h\n    return x * 2",
    "not": "if not x.sum() > 0:\n        x = x * 2\n    return x + 1",
    "or": "if x.sum() > 100 or x.max() < 0:\n        x = x * 2\n    return x + 1",
    "ternary": "y = x * 2 if x.mean() > 0 else x - 1\n    return y",
    "nested_ternary": "return x * 2 if x.mean() > 1 else (x - 1 if x.mean() > 0 else x * 5)",
    "early": "y = x * 2\n    if x.sum() > 0:\n        return y + 1\n    z = y * 3\n    return z - 1",
    "tuple": "if x.sum() > 0:\n        return x + 1, x * 2\n    return x - 1, x * 3",
    "static": "if x.dim() == 2 and (x > 0).all():\n        x = x * 2\n    return x + 1",
    "bool_call": "if bool(x.sum() > 0):\n        x = x * 2\n    return x + 1",
    "truth": "if x.sum():\n        x = x * 2\n    return x + 1",
    "any_rows": "if (x > 0).any() and not (x > 100).any():\n        x = x * 2\n    return x + 1",
    "item": "s = x.sum().item()\n    if s > 0:\n        x = x * 2\n    return x + 1",
    "item_chain": "if 0 < x.sum().item() < 100:\n        x = x * 2\n    return x + 1",
    "in_loop": "for i in range(3):\n        if x.sum() > i:\n            x = x + 1\n    return x * 2",
    "sqrt": "if (x > 0).all():\n        y = x.abs().sqrt()\n    else:\n        y = x * 2\n    return y",
    "call": "h = F.relu(x)\n    if h.sum() > 0:\n        h = F.gelu(h)\n    return h * 2",
    "equal": "if torch.equal(x, x.abs()):\n        x = x * 2\n    return x + 1",
}

LOOPS = {
    "break": "for i in range(4):\n        x = x * 2\n        if x.sum() > 30:\n            break\n    return x + 1",
    "continue": "y = x * 0\n    for i in range(3):\n        if x.sum() > i:\n            continue\n        y = y + x\n    return y",
    "while": "y = x.abs()\n    while y.sum() < 100:\n        y = y * 2\n    return y",
    "break_first": "for i in range(4):\n        if x.sum() > 30:\n            break\n        x = x * 2\n    return x + 1",
}

GUARDS = {
    "raise": 'if (x < 0).any():\n        raise ValueError("negative")\n    return x.sqrt()',
    "raise_format": 'if (x < 0).any():\n        raise ValueError(f"negative {x.shape}: {x}")\n    return x.sqrt()',
    "raise_not": 'if not (x >= 0).all():\n        raise ValueError("negative")\n    return x.sqrt()',
    "raise_item": 'if x.min().item() < 0:\n        raise ValueError("negative")\n    return x.sqrt()',
    "raise_else": 'if x.min() < 0:\n        raise ValueError("negative")\n    else:\n        x = x + 1\n    return x.sqrt()',
    "assert_not": 'assert not (x < 0).any(), "negative"\n    return x.sqrt()',
    "assert_and": "assert (x > 0).all() and (x < 5).all()\n    return x.sqrt()",
    "assert_item": "assert x.min().item() > 0\n    return x.sqrt()",
    "assert_format": 'assert (x > 0).all() and x.sum() > 0, f"bad {x}"\n    return x.sqrt()',
}

OUTPUT = {
    "print": 'y = x + 1\n    print("y", y.sum(), sep="=")\n    return y * 2',
    "print_item": 'y = x + 1\n    print("y %d" % y.sum().item(), int(y.sum()), end="!")\n    return y * 2',
    "print_format": 'y = x + 1\n    print(f"{y.sum().item():.2f} {y.shape}")\n    return y * 2',
    "print_loop": 'for i in range(2):\n        x = x + 1\n        print(i, x.mean())\n    return x',
    "print_if": 'y = x + 1\n    if y.sum() > 0:\n        print("positive", y.sum())\n    return y',
    "logger": 'y = x + 1\n    logger.info("y %s %s", y.shape, y.sum())\n    return y',
    "logger_item": 'y = x + 1\n    logger.warning(f"sum {y.sum().item():.3f}")\n    return y',
    "logger_if": 'if x.sum() > 0:\n        logger.warning("positive")\n    return x * 2',
    "in_try": 'try:\n        y = x + 1\n        print("a")\n    finally:\n        x = x * 2\n    return x + y',
}

SCALARS = {
    "multiply": "return x * x.sum().item()",
    "float": "s = float(x.mean())\n    return x / (s + 10)",
    "add": "return x + x.max().item() * 2",
    "accumulate": "total = 0.0\n    for i in range(3):\n        total += x[i].sum().item()\n    return x * total",
    "clamp": "y = x.clone()\n    y[y < 0] = 0\n    return y * y.sum().item()",
    "math": "return x * math.exp(x.mean())",
    "unpack": "a, b, c, d = x[0].tolist()\n    return x * a + d",
    "minimum": "m = max(0.0, x.max().item())\n    return x + m",
}

SHAPES = {
    "sum": "return x[x > 0].sum()",
    "mean": "return x[x.abs() > 0].mean()",
    "count": "return x * (x > 0).nonzero().shape[0]",
    "count_length": "return x + len(x[x > 0])",
    "double": "y = x * 1\n    m = y > 0\n    y[m] = y[m] * 2\n    return y",
    "increment": "y = x * 1\n    y[y > 0] += 1\n    return y",
    "select": "return x.masked_select(x > 0).sum()",
}

PYTHON = {
    "deepcopy": "y = copy.deepcopy(x)\n    return y + 1",
    "module": 'return x * importlib.import_module("math").pi',
    "gc": "y = x + 1\n    gc.collect()\n    return y",
    "environ": 'os.environ["JUDGED"] = "1"\n    return x + 1',
    "class": "class Two:\n        value = 2\n    return x * Two.value",
    "power": "return pow(x, 2)",
    "cpu_count": "return x * min(os.cpu_count(), 1)",
}

INDICES = {
    "item": "return x[n.item()] * 2",
    "argmax": "return x[x[:, 0].argmax()] * 2",
    "store": "y = x.clone()\n    y[n.item()] = 0\n    return y",
    "column": "return x[:, n.item()] + 1",
    "store_row": "y = x.clone()\n    y[n.item()] = y[0] * 2\n    return y",
}


@pytest.mark.parametrize("body", BRANCHES.values(), ids=BRANCHES)
def test_branch(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_loop(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", GUARDS.values(), ids=GUARDS)
def test_guard(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", OUTPUT.values(), ids=OUTPUT)
def test_output(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, plain)


@pytest.mark.parametrize("body", OUTPUT.values(), ids=OUTPUT)
def test_output_is_kept_with_gradients(body: str) -> None:
    if "x.sum()" not in body and "y.sum()" not in body and "mean" not in body:
        judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", SCALARS.values(), ids=SCALARS)
def test_scalar(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_shape(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", PYTHON.values(), ids=PYTHON)
def test_python(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, plain)


@pytest.mark.parametrize("body", INDICES.values(), ids=INDICES)
def test_index(body: str) -> None:
    inputs = "\n\ndef example_inputs():\n    return [(torch.rand(5, 3), torch.tensor(1))]\n"
    judge(module(f"def case(x, n):\n    {body}\n") + inputs, indexed)


INPUTS = "\n\ndef example_inputs():\n    return [(torch.rand(4, 4),)]\n"


REFUSED = {
    "prints": "if x.sum() > 0:\n        x = helper(x)\n    return x",
    "shapes": "if x.sum() > 0:\n        x = x[:1]\n    return x * 2",
    "dtypes": "y = x\n    if x.sum() > 0:\n        y = x > 0\n    return y",
    "random": "if x.sum() > 0:\n        x = x + torch.rand_like(x)\n    return x",
    "flag": "flag = False\n    if x.sum() > 0:\n        flag = True\n    return x, flag",
    "in_try": 'try:\n        if x.sum() > 0:\n            raise ValueError("a")\n    except ValueError:\n        x = x + 1\n    return x',
    "range": "y = x\n    for i in range(int(x.sum())):\n        y = y[: i + 1]\n    return y",
    "returned": "return x + 1, x.sum().item()",
    "list": "out = []\n    if x.sum() > 0:\n        out.append(x)\n    return out",
    "attribute": "if x.sum() > 0:\n        helper.seen = True\n    return x",
    "alias": "y = x\n    if x.sum() > 0:\n        y = x * 2\n    y.add_(1)\n    return y",
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refusal(body: str) -> None:
    text = module(f"def case(x):\n    {body}\n") + INPUTS
    text = text.replace("@torch.compile", "def helper(x):\n    global seen\n    seen = x\n    return x\n\n\n@torch.compile")
    mended = mend_text(text)
    assert mended.source.text == text
    assert mended.left
    assert all(reason for _, reason in mended.left)
