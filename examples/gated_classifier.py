"""A float16 classifier with what many published models carry along: an overflow guard, a log line, a late branch.

graphmend check examples/gated_classifier.py
graphmend verify --mend --unsafe-fixes examples/gated_classifier.py
"""

from __future__ import annotations

import logging

import torch
from torch import Tensor, nn

logger = logging.getLogger(__name__)


class GatedBlock(nn.Module):
    """Widens, gates and narrows again. Its hidden values may leave what float16 holds."""

    def __init__(self, width: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, dtype=dtype)
        self.gate = nn.Linear(width, 4 * width, dtype=dtype)
        self.up = nn.Linear(width, 4 * width, dtype=dtype)
        self.down = nn.Linear(4 * width, width, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        normal = self.norm(x)
        hidden = self.up(normal) * torch.sigmoid(self.gate(normal))
        if hidden.dtype == torch.float16 and (torch.isinf(hidden).any() or torch.isnan(hidden).any()):
            limit = torch.finfo(hidden.dtype).max - 1000
            hidden = torch.clamp(hidden, min=-limit, max=limit)
        return x + self.down(hidden)


class GatedClassifier(nn.Module):
    """Blocks, a pooled vector, and class scores that are damped where the pooled vector is large."""

    def __init__(self, width: int = 16, classes: int = 4, dtype: torch.dtype = torch.float16) -> None:
        super().__init__()
        self.first = GatedBlock(width, dtype)
        self.second = GatedBlock(width, dtype)
        self.head = nn.Linear(width, classes, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        x = self.second(self.first(x))
        logger.warning("largest hidden value: %.2f", x.abs().max())
        pooled = x.mean(dim=1)
        scores = self.head(pooled)
        if pooled.norm() > 10.0:
            scores = scores * 0.5
        return scores


def get_init_inputs() -> tuple[int, int]:
    return 16, 4


def example_inputs() -> list[tuple[Tensor]]:
    """One call for each side of the last branch."""
    inputs = torch.randn(2, 6, 16, dtype=torch.float16)
    return [(inputs,), (inputs * 10.0,)]
