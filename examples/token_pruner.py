"""Prunes tokens by a learned score: boolean masks whose number of hits depends on the data.

graphmend check examples/token_pruner.py
graphmend verify --mend --unsafe-fixes examples/token_pruner.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TokenPruner(nn.Module):
    """Keeps the tokens that score above average, and pools them; says how many it kept."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.out = nn.Linear(width, width)

    def forward(self, tokens: Tensor) -> Tensor:
        if (tokens.abs() > 100.0).any():
            tokens = tokens.clamp(-100.0, 100.0)
        score = torch.sigmoid(self.score(tokens)).squeeze(-1)
        keep = score > score.mean()
        kept = keep.nonzero().shape[0]
        pooled = (tokens * keep.unsqueeze(-1)).sum(dim=0) / kept
        strongest = score[keep].max()
        print("kept", keep.sum().item(), "of", tokens.shape[0])
        return self.out(pooled) * strongest


def get_init_inputs() -> tuple[int]:
    return (8,)


def example_inputs() -> list[tuple[Tensor]]:
    """One call for each side of the first branch."""
    tokens = torch.randn(10, 8)
    return [(tokens,), (tokens * 100.0,)]
