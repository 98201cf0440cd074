"""A call of the CTC loss becomes one node of the graph, with what a module or a context around it says."""

from __future__ import annotations

import ast

import pytest
from judge import mend_text

HEAD = """import torch
import torch.nn.functional as F
from torch import nn

criterion = nn.CTCLoss(blank=2, reduction="sum")


@torch.compile
def case(log_probs: torch.Tensor, y: torch.Tensor, n: torch.Tensor, m: torch.Tensor, strict: bool = False):
    {}


def example_inputs():
    return [(torch.randn(9, 2, 6).log_softmax(-1), torch.tensor([[1, 3], [4, 3]]), torch.tensor([9, 8]), n())]


def n():
    return torch.tensor([2, 1])
"""
OFF = "with torch.backends.cudnn.flags(enabled=False):\n        "

MENDED = [
    ("return F.ctc_loss(log_probs, y, n, m)", "return ctc_loss(log_probs, y, n, m)", False),
    (
        "loss = F.ctc_loss(log_probs, y, n, m) * 2\n    return loss",
        "loss = ctc_loss(log_probs, y, n, m) * 2",
        False,
    ),
    (
        f"{OFF}return F.ctc_loss(log_probs, y, n, m, blank=1)",
        "return ctc_loss(log_probs, y, n, m, blank=1, cudnn=False)",
        False,
    ),
    (
        f"{OFF}loss = F.ctc_loss(log_probs, y, n, m)\n    return loss + 1",
        "loss = ctc_loss(log_probs, y, n, m, cudnn=False)",
        False,
    ),
    (
        "return criterion(log_probs, y, n, m)",
        "return ctc_loss(log_probs, y, n, m, blank=criterion.blank, reduction=criterion.reduction, "
        "zero_infinity=criterion.zero_infinity)",
        False,
    ),
]


@pytest.mark.parametrize(("before", "after", "unsafe"), MENDED)
def test_a_call_is_one_node(before: str, after: str, unsafe: bool) -> None:
    mended = mend_text(HEAD.replace("{}", before), unsafe=unsafe).source.text
    assert "contextlib" not in mended
    assert after.replace("ctc_loss(", "graphmend.runtime.ctc_loss(") in "\n".join(
        ast.unparse(s) for s in ast.walk(ast.parse(mended)) if isinstance(s, ast.stmt)
    )


LEFT = [
    f"{OFF}log_probs = log_probs * 2\n        loss = F.ctc_loss(log_probs, y, n, m)\n    return loss",
    "with torch.backends.cudnn.flags(enabled=strict):\n        return F.ctc_loss(log_probs, y, n, m)",
    f"{OFF}return F.ctc_loss(log_probs, y, n, m) * 2",
    "return F.ctc_loss(*(log_probs, y, n), m)",
    "criterion.register_forward_hook(print)\n    return criterion(log_probs, y, n, m)",
]


@pytest.mark.parametrize("body", LEFT)
def test_what_is_more_than_a_call_is_left(body: str) -> None:
    text = HEAD.replace("{}", body)
    assert "runtime" not in mend_text(text, unsafe=False).source.text
