"""Loops over the indices that a mask has something for: the mended loop is captured whole, and gives the same."""

from __future__ import annotations

import types
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from judge import mend_text  # noqa: E402

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(5)])
        self.gate = nn.Linear(4, 5)

    def forward(self, x):
        weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
        mask = F.one_hot(chosen, num_classes=5).permute(2, 1, 0)
        out = torch.zeros_like(x)
"""

NUMBERS = """
        hit = (mask.sum(dim=(-1, -2)) > 0).nonzero(as_tuple=True)[0].tolist()
        for e in hit:
            layer = self.layers[e]
            at, rows = torch.where(mask[e])
            out.index_add_(0, rows, layer(x[None, rows].reshape(-1, 4)) * weights[rows, at, None])
        return out * 2
"""

TENSORS = """
        hit = torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero()
        for index in hit:
            e = index.item()
            at, rows = torch.where(mask[index].squeeze(0))
            if rows.numel() == 0:
                continue
            part = x[rows]
            if e > 2:
                part = self.layers[index[0]](part)
            out.index_add_(0, rows, part * weights[rows, at, None])
        return out
"""

STORED = """
        hit = torch.any(mask, dim=(-2, -1)).nonzero(as_tuple=False)
        for index in hit:
            index = index[0]
            at, rows = torch.where(mask[index])
            out[rows] += self.layers[0](x[rows]) * weights[rows, at, None]
        return out
"""


def module(text: str) -> Any:
    made = types.ModuleType("experts")
    exec(compile(text, "experts.py", "exec"), made.__dict__)
    return made


@pytest.mark.parametrize("loop", [NUMBERS, TENSORS, STORED], ids=["numbers", "tensors", "stored"])
def test_every_index_gives_what_those_with_something_give(loop: str) -> None:
    mended = mend_text(HEAD + loop)
    assert "every_index" in [a.fix.rewrite for a in mended.applied]
    torch.manual_seed(0)
    plain = module(HEAD + loop).Experts()
    model = module(mended.source.text).Experts()
    model.load_state_dict(plain.state_dict())
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for rows in (1, 7):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), plain(x))
        torch.testing.assert_close(model(x), plain(x))


def test_it_is_unsafe_and_says_what_differs() -> None:
    (fix,) = [a.fix for a in mend_text(HEAD + NUMBERS).applied if a.fix.rewrite == "every_index"]
    assert fix.applicability == "unsafe"
    assert "every index" in fix.reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return out * 2", "return out * len(hit)"),
        ("out.index_add_(0, rows,", "rows = chosen[:, 0]\n            out.index_add_(0, rows,"),
        ("layer = self.layers[e]", "layer = self.layers[e]\n            out = out + 1"),
        ("layer = self.layers[e]", "layer = self.layers[e]\n            print(e)"),
        ("layer = self.layers[e]", "layer = self.layers[e]\n            self.last = e"),
        ("torch.where(mask[e])", "torch.where(mask[e - 1])"),
        ("return out * 2", "return out * e"),
        ("mask.sum(dim=(-1, -2))", "mask.sum(dim=(0, 1))"),
        ("> 0)", "> 1)"),
    ],
    ids=[
        "counted", "other_positions", "carried", "printed", "attribute", "another_index", "index_lives",
        "other_dimensions", "threshold",
    ],
)  # fmt: skip
def test_a_loop_that_may_do_more_is_left(old: str, new: str) -> None:
    text = HEAD + NUMBERS.replace(old, new)
    assert text != HEAD + NUMBERS
    assert "every_index" not in [a.fix.rewrite for a in mend_text(text).applied]
