"""A mixture of experts under test: the head of its `forward`, and the judgement of a mend of what follows."""

from __future__ import annotations

import types
from typing import Any

from judge import torch, unbroken

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


def experts(text: str) -> Any:
    """An instance of the class that a module's text defines."""
    made = types.ModuleType("experts")
    exec(compile(text, "experts.py", "exec"), made.__dict__)
    return made.Experts()


def gives_the_same(original: str, mended: str) -> None:
    """The mended module, in plain Python and captured whole, against the original for a row and for several."""
    torch.manual_seed(0)
    plain, model = experts(original), experts(mended)
    model.load_state_dict(plain.state_dict())
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    for rows in (1, 7):
        x = torch.randn(rows, 4)
        with unbroken():
            torch.testing.assert_close(compiled(x), plain(x))
        torch.testing.assert_close(model(x), plain(x))
