"""Where a program asks whether values are finite, no mend sends zeros into what is not; numbers that may stay numbers
are given to no function of torch."""

from __future__ import annotations

import pytest
from judge import mend_text

HEAD = """
import math
import torch
from torch import nn
EPS = 0.5
def is_bad(v):
    return not torch.isfinite(v)
class Net(nn.Module):
    def __init__(self, criterion):
        super().__init__()
        self.lin, self.other, self.criterion = nn.Linear(2, 2), nn.Linear(2, 2), criterion
    def forward(self, x):
"""
TAIL = "\nnet = torch.compile(Net(None))\n"
ASKED = {
    "a method of what is not known": "loss = self.criterion(self.lin(x))\nif loss.isnan():\n    loss = x.sum() * 0\n"
    "return loss",
    "a mask": "y = self.lin(x)\nbad = y.sum() > 100\nbad |= torch.isnan(y).any()\nif bad:\n    y = x * 0\nreturn y",
    "an attribute": "y = self.lin(x)\nself.bad = torch.isnan(y).any()\nif self.bad:\n    y = x * 0\nreturn y",
    "a helper": "y = self.lin(x).sum()\nif is_bad(y):\n    y = x.sum() * 0\nreturn y",
    "infinity": 'y = self.lin(x).sum()\nif y.abs() == float("inf"):\n    y = x.sum() * 0\nreturn y',
    "what is not itself": "y = self.lin(x)\nif (y != y).any():\n    y = x * 0\nreturn y",
    "what is itself": "y = self.lin(x)\nreturn y if (y == y).all() else x * 0",
}
NOT_ASKED = {
    "cleaned before": "x = torch.where(torch.isnan(x), torch.zeros_like(x), x)\nif x.sum() > 0:\n"
    "    return self.lin(x)\nreturn self.other(x)",
    "cleaned behind": "if x.sum() > 0:\n    y = self.lin(x)\nelse:\n    y = self.other(x)\n"
    "x = torch.where(torch.isnan(y), 0.0, y)\nreturn x",
    "one path": "y = self.lin(x)\nif torch.isnan(y).any():\n    y = torch.nan_to_num(y)\nreturn y",
}


def module(body: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in body.splitlines()) + TAIL


def chosen(text: str) -> bool:
    rewrites = {applied.fix.rewrite for applied in mend_text(text).applied}
    return bool(rewrites & {"where", "select", "where_expression"})


@pytest.mark.parametrize("body", ASKED.values(), ids=ASKED)
def test_nothing_is_selected_where_it_is_asked(body: str) -> None:
    assert not chosen(module(body))
    assert chosen(
        module(body.replace("isnan", "signbit").replace("is_bad", "bool").replace("!=", "<").replace("==", ">"))
    )


@pytest.mark.parametrize("body", NOT_ASKED.values(), ids=NOT_ASKED)
def test_what_was_cleaned_is_mended(body: str) -> None:
    assert chosen(module(body))


def test_each_name_is_followed_once() -> None:
    lines = [f"x{i} = torch.relu(self.lin(x{i - 1})) + x{i - 1}" for i in range(1, 40)]
    body = ["x0 = x", *lines, "if x39.sum() > 0:", "    y = x39.log()", "else:", "    y = self.lin(x39)", "return y"]
    assert chosen(module("\n".join(body)))  # each line would double the time


NUMBERS = {
    "a parameter": "def f(x, last, a: float):\n    if last:\n        a = x.sum().item()\n    return math.sqrt(a) * x",
    "a constant of the file": "def f(x, last):\n    b = x.sum().item() if last else EPS\n    return math.sqrt(b) * x",
    "another parameter": "def f(x, last, n):\n    b = x.sum().item() if last else n\n    return math.sqrt(b) * x",
    "a target of a loop": "def f(x, last):\n    for a in (1.0, 2.0):\n        if last:\n"
    "            a = x.sum().item()\n        x = math.sqrt(a) * x\n    return x",
    "an item": "def f(x, last, pair):\n    a, b = pair\n    if last:\n        a = x.sum().item()\n"
    "    return math.sqrt(a) * x",
    "added to perhaps": "def f(x, last, a):\n    if last:\n        a += x.sum().item()\n    return math.sqrt(a) * x",
    "a default": "def f(x, last, scale=1.0):\n    if last:\n        scale = x.abs().max().item()\n"
    "    return x / max(scale, 1e-5)",
    "a method": "def f(x, last):\n    a = 1.5\n    if last:\n        a = x.sum().item()\n    return x * int(a)",
}
TENSORS = {
    "added to": "def f(x):\n    a = 1.0\n    a += x.sum().item()\n    return math.sqrt(a) * x",
    "its size": "def f(x):\n    a = x.sum().item()\n    a = abs(a)\n    return math.sqrt(a) * x",
    "again": "def f(x):\n    a = x.sum().item()\n    for i in range(3):\n        a = math.sqrt(a + 1)\n"
    "    return a * x",
    "either": "def f(x, last):\n    a = x.sum().item() if last else x.max().item()\n    return math.sqrt(a) * x",
}


def function(text: str) -> str:
    return f"import math\nimport torch\nEPS = 0.5\n@torch.compile\n{text}\n"


@pytest.mark.parametrize("text", NUMBERS.values(), ids=NUMBERS)
def test_a_number_stays_one(text: str) -> None:
    assert not mend_text(function(text)).changed


@pytest.mark.parametrize("text", TENSORS.values(), ids=TENSORS)
def test_what_is_a_tensor_on_every_way_is_kept(text: str) -> None:
    mended = mend_text(function(text)).source.text
    assert ".item()" not in mended
    assert "torch.sqrt(" in mended
