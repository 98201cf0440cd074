"""Branches over what modules hand out: their parameters and buffers are tensors, each with a shape of its own; and a
number that a property computes of a buffer.
"""

from __future__ import annotations

from typing import Any

import pytest
from judge import judge, mend_text, torch

HEAD = """\
import copy

import torch
from torch import nn

torch.manual_seed(0)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)
        self.target = copy.deepcopy(self.net)
        self.average = nn.ParameterList([nn.Parameter(torch.zeros(4, 4), requires_grad=False)])
        self.norm = nn.BatchNorm1d(4).eval()
        self.register_buffer("steps", torch.tensor(3))

    @property
    def decay(self):
        n = self.steps.item()
        return min(0.9, (1 + n) / (10 + n))

    @torch.no_grad()
    def forward(self, x):
"""
TAIL = """
        return x, self.target.weight.clone(), self.average[0].clone(), self.norm.running_mean.clone()


@torch.compile
def case(x):
    return agent(x)


agent = Agent()
"""
BODIES = {
    "copied": "if x.sum() > 0:\n"
    "    for old, new in zip(self.target.parameters(), self.net.parameters()):\n"
    "        old.data.copy_(new.data * 2)\n",
    "buffers": "if x.sum() > 0:\n    for name, held in self.norm.named_buffers():\n        held.add_(1)\n",
    "decayed": "for a, w in zip(self.average, [x]):\n    a.sub_((1 - self.decay) * (a - w))\nself.steps += 1\n",
    "averaged": "for a, w in zip(self.average, [x]):\n"
    "    if x.sum() > 0:\n"
    "        a.copy_(w)\n"
    "    else:\n"
    "        a.add_((w - a) / 2)\n",
}


def program(body: str) -> str:
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    return f"{HEAD}{lines}{TAIL}"


def both() -> list[tuple[Any, ...]]:
    one = torch.rand(4, 4) + 0.1
    return [(one,), (-one,)]


@pytest.mark.torch
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_what_is_held_is_selected(body: str) -> None:
    judge(program(body), both)


def test_what_runs_side_by_side_has_shapes_of_its_own() -> None:
    body = (
        "for a, b in zip(self.average, self.net.parameters()):\n    a = b if x.sum() > 0 else a\n    x = x + a.sum()\n"
    )
    assert "a = graphmend.runtime.select(" in mend_text(program(body)).source.text
