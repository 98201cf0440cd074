"""One step of training as people write it while they debug: an early raise, an assert, numbers taken out for the log.

graphmend check examples/guarded_step.py
graphmend verify --mend --unsafe-fixes examples/guarded_step.py
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


# graphmend: example step(torch.randn(8, 4), torch.randn(16, 8), torch.randint(0, 4, (16,)), 0.1)
@torch.compile
def step(weight: Tensor, inputs: Tensor, labels: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    """The loss, and what the weight becomes after one step down its gradient."""
    if labels.max() >= weight.shape[1]:
        raise ValueError("a label is larger than the number of classes")
    logits = inputs @ weight
    loss = F.cross_entropy(logits, labels)
    assert not torch.isnan(loss), "the loss is not a number"
    slope = inputs.T @ (logits.softmax(dim=-1) - F.one_hot(labels, weight.shape[1])) / len(labels)
    size = slope.norm()
    scale = 1.0 / max(size.item(), 1.0)
    print("loss", loss.item(), "gradient", size.item())
    return loss, weight - rate * scale * slope
