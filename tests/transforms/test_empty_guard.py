"""The question whether any positions were found goes where nothing is done if there are none."""

from __future__ import annotations

import pytest
from experts import HEAD, gives_the_same
from judge import mend_text

BLOCK = """
        for e in range(5):
            layer = self.layers[e]
            at, rows = torch.where(mask[e])
            if rows.numel() > 0:
                part = layer(x[rows]) * weights[rows, at, None]
                out.index_add_(0, rows, part)
        return out
"""

LEAVING = """
        for e in range(5):
            rows = mask[e].sum(0).nonzero(as_tuple=True)[0]
            at, rows = torch.where(mask[e])
            if rows.shape[0] == 0:
                continue
            part = self.layers[e](x[rows]) * weights[rows, at, None]
            out[rows] += part
        return out
"""

ONCE = """
        at, rows = torch.where(mask[0])
        if len(rows) != 0:
            out[rows] = self.layers[0](x[rows])
        return out * 2
"""


def rewrites(text: str) -> list[str]:
    return [a.fix.rewrite for a in mend_text(text).applied]


@pytest.mark.torch
@pytest.mark.parametrize("body", [BLOCK, LEAVING, ONCE], ids=["block", "leaving", "once"])
def test_it_gives_the_same_without_the_question(body: str) -> None:
    mended = mend_text(HEAD + body)
    assert [a.fix.applicability for a in mended.applied if a.fix.rewrite == "empty_guard"] == ["unsafe"]
    gives_the_same(HEAD + body, mended.source.text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("out.index_add_(0, rows, part)", "out = out + part.sum()"),
        ("out.index_add_(0, rows, part)", "out.index_add_(0, chosen[:, 0], part)"),
        ("out.index_add_(0, rows, part)", "out.add_(1)"),
        ("return out", "return out, part"),
        ("rows.numel() > 0", "rows.numel() > 1"),
        ("rows.numel() > 0", "rows.numel() > 0 and e > 2"),
        ("layer = self.layers[e]", "layer = self.layers[e]; part = x"),
        ("                part =", "                print(e)\n                part ="),
    ],
    ids=["rebound", "elsewhere", "in_place", "read", "more", "and_more", "from_before", "prints"],
)
def test_what_may_do_something_all_the_same_keeps_its_question(old: str, new: str) -> None:
    text = HEAD + BLOCK.replace(old, new)
    assert text != HEAD + BLOCK
    assert "empty_guard" not in rewrites(text)


def test_a_question_that_leaves_the_function_stays() -> None:
    text = HEAD + ONCE.replace("if len(rows) != 0:", "if len(rows) == 0:\n            return x\n        if x.shape[0]:")
    assert "empty_guard" not in rewrites(text)
