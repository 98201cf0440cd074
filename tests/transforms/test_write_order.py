"""Branches that write to what lives on: each side's writes, and what it computes behind them, stay in its order."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from bodies import bodies
from judge import mend_text, torch

_HEAD = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("width", torch.ones(3))
        self.register_buffer("fresh", torch.tensor(True))
        self.register_buffer("step", torch.tensor(0))
        self.factor = 0.1

    def forward(self, x):
"""
_TAIL = "\n\nnet = torch.compile(Net())\n"

ORDERED = bodies("""
# flag_that_the_branch_clears
if self.fresh:
    self.fresh.fill_(False)
    self.mean.copy_(x)
    self.width.copy_(x.abs() + 1)
return (x - self.mean) / self.width

# first_batch
if self.step.item() == 0:
    with torch.no_grad():
        self.mean.copy_(x * 2)
        self.width.copy_((x - self.mean).abs())
        self.step.fill_(1)
return x * self.width + self.mean

# moving_mean
if self.step > 0:
    self.mean.mul_(1 - self.factor).add_(x, alpha=self.factor)
else:
    self.mean.copy_(x)
self.step += 1
return x - self.mean

# counted_on_either_side
if x.sum() > 0:
    self.mean += x
    y = x * self.mean
else:
    self.width -= 1
    y = x / 2
return y

# returned_behind_a_write
if x.sum() > 0:
    self.mean.add_(x)
    return self.mean * 2
self.width.mul_(2)
return self.width - x

# bound_in_front_and_behind
y = z = x
if x.sum() > 0:
    self.mean.add_(1)
    z = x + y
else:
    z = y * 3
    y = y + 1
return y - z * self.mean

# items
y = x.clone()
if x.sum() > 0:
    y[0] += 1
    y[1] *= 2.5
return y

# other_order_on_the_other_side
if x.sum() > 0:
    self.mean.add_(self.width)
    self.width.mul_(2)
else:
    self.width.sub_(1)
    self.mean.copy_(self.width)
return x * self.mean

# needed_behind_a_write
if x.sum() > 0:
    self.mean.add_(1)
    y = x * self.mean
    self.width.copy_(y)
    y = y + self.width
else:
    y = x
return y
""")

REFUSED = bodies("""
# drawn_between_writes
if x.sum() > 0:
    self.mean.add_(1)
    noise = torch.randn(3)
    self.width.add_(noise)
else:
    self.width.sub_(1)
return x * self.mean
""")


def _text(body: str) -> str:
    return _HEAD + textwrap.indent(body.strip("\n"), " " * 8) + _TAIL


def _ran(text: str, inputs: list[Any]) -> tuple[list[Any], list[Any]]:
    """What a module gives for inputs, one after the other, and what its buffers hold then."""
    space: dict[str, Any] = {}
    exec(compile(text, "net.py", "exec"), space)
    net = space["Net"]()
    with torch.no_grad():
        given = [net(x.clone()).clone() for x in inputs]
    return given, list(net.buffers())


@pytest.mark.torch
@pytest.mark.parametrize("body", ORDERED.values(), ids=ORDERED)
def test_order(body: str) -> None:
    text = _text(body)
    mended = mend_text(text)
    assert mended.changed
    assert not mended.left, mended.source.text
    for signs in ((1, 1, -1), (-1, 1, -1), (-1, -1, 1)):
        inputs = [torch.tensor([1.0, 2.0, 4.0]) * sign for sign in signs]
        expected, found = _ran(text, inputs), _ran(mended.source.text, inputs)
        for one, other in zip(expected[0] + expected[1], found[0] + found[1], strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refusal(body: str) -> None:
    mended = mend_text(_text(body))
    assert mended.source.text == _text(body), mended.source.text
