"""The question whether any positions were found goes where nothing is done if there are none."""

from __future__ import annotations

import pytest
from experts import HEAD, gives_the_same
from judge import edited, mend_text

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.mend import mend, mend_all

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


def offered(text: str) -> list[Fix]:
    found = check(Source(text, "model.py"))
    return [a for f in found.findings for a in mend(f, found.facts(f)) if isinstance(a, Fix)]


def rewrites(text: str) -> list[str]:
    return [fix.rewrite for fix in offered(text)]


COUNTED = """
        seen = torch.zeros(5)
        for e in range(5):
            at, rows = torch.where(mask[e])
            if rows.numel() == 0:
                continue
            out.index_add_(0, rows, self.layers[e](x[rows]) * weights[rows, at, None])
            seen[e] += rows.shape[0]
        return out + seen.sum()
"""


@pytest.mark.torch
@pytest.mark.parametrize("body", [BLOCK, LEAVING, ONCE, COUNTED], ids=["block", "leaving", "once", "counted"])
def test_it_gives_the_same_without_the_question(body: str) -> None:
    (fix,) = (fix for fix in offered(HEAD + body) if fix.rewrite == "empty_guard")
    assert fix.applicability == "unsafe"
    gives_the_same(HEAD + body, edited(fix, Source(HEAD + body)))


def test_it_is_not_made_where_the_break_stays() -> None:
    mended = mend_text(HEAD + BLOCK.replace("layer(x[rows])", "layer(x[rows]).cumsum(0)"))
    assert not mended.changed
    assert any("does not remove the break" in reason for _, reason in mended.left)


def test_it_is_made_where_sizes_are_captured() -> None:
    text = HEAD + BLOCK.replace("layer(x[rows])", "layer(x[rows]).cumsum(0)")
    mended = mend_all(Source(text, "model.py"), unsafe=True, captures=True)
    assert [one.fix.rewrite for one in mended.applied] == ["empty_guard"]
    assert "if rows.numel() > 0" not in mended.source.text
    assert [finding.code for finding, _ in mended.left] == ["GM401"]
    assert not mend_all(Source(text, "model.py"), unsafe=False, captures=True).changed


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
