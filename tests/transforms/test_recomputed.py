"""A value read from memory that outlives the graph, and that the function changes, is never safely put into it:
backward computes it again.
"""

from __future__ import annotations

import textwrap

import pytest

from graphmend.analysis.syntax.source import Source
from graphmend.transforms.mend import Applied, mend_all

_HEAD = """\
import torch
from torch import Tensor, nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("t", torch.ones(()))

    def tick(self):
        self.t.mul_(0.5)

    @torch.compile
    def forward(self, x: Tensor, y: Tensor):
"""
_BRANCH = "if self.t > 0.7:\n    z = x * 2.0\nelse:\n    z = x * 3.0\n"
_DETACHED = "if self.t > 0.7:\n    z = x.detach() * 2.0\nelse:\n    z = x.detach() * 3.0\n"


def _applied(body: str) -> list[Applied]:
    return mend_all(Source(_HEAD + textwrap.indent(body, " " * 8), "program.py"), unsafe=True).applied


@pytest.mark.parametrize(
    "body",
    [
        _BRANCH + "self.t.mul_(0.5)\nreturn z",
        "self.t.mul_(0.5)\n" + _BRANCH + "return z",
        _BRANCH + "self.tick()\nreturn z",
        "z = x * 2.0 if self.t > 0.7 else x * 3.0\nself.t.mul_(0.5)\nreturn z",
        "old = self.t.item()\nself.t.mul_(0.5)\nreturn x * old",
        "s = y[0].item()\ny.add_(1)\nreturn x * s",
        "f = y[0]\nif f > 0.5:\n    z = x * 2.0\nelse:\n    z = x * 3.0\ny.zero_()\nreturn z",
    ],
    ids=["behind", "in front", "by a method", "expression", "number", "of a parameter", "through a name"],
)
def test_what_backward_computes_again_is_named(body: str) -> None:
    applied = _applied(body)
    assert applied
    assert any(d.kind == "gradients" and "torch 2.13" in d.says for one in applied for d in one.fix.differences)


@pytest.mark.parametrize(
    "body",
    [
        _BRANCH + "self.t = self.t * 0.5\nreturn z",
        _BRANCH + "with torch.no_grad():\n    y.mul_(0.5)\nreturn z",
        _DETACHED + "self.t.mul_(0.5)\nreturn z > 1",
        "with torch.no_grad():\n" + textwrap.indent(_BRANCH + "self.t.mul_(0.5)\nreturn z", "    "),
    ],
    ids=["bound again", "other memory", "no gradients", "off"],
)
def test_what_backward_does_not_need_is_not(body: str) -> None:
    applied = _applied(body)
    assert applied
    assert not any("torch 2.13" in d.says for one in applied for d in one.fix.differences)
