"""Loops over the indices that a mask has something for: the mended loop is captured whole, and gives the same."""

from __future__ import annotations

import pytest
from experts import HEAD, gives_the_same
from judge import mend_text

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


@pytest.mark.torch
@pytest.mark.parametrize("loop", [NUMBERS, TENSORS, STORED], ids=["numbers", "tensors", "stored"])
def test_every_index_gives_what_those_with_something_give(loop: str) -> None:
    mended = mend_text(HEAD + loop)
    assert "every_index" in [a.fix.rewrite for a in mended.applied]
    gives_the_same(HEAD + loop, mended.source.text)


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
