"""Mixture of experts with top-k routing."""
import logging

import torch
import torch.nn as nn
import torch.nn.functional as F

logger = logging.getLogger(__name__)


class Expert(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden)
        self.w2 = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)))


class Router(nn.Module):
    def __init__(self, dim, n_experts, top_k):
        super().__init__()
        self.gate = nn.Linear(dim, n_experts, bias=False)
        self.top_k = top_k
        self.last_load = None

    def forward(self, x):
        logits = self.gate(x)
        probs = logits.softmax(-1)
        weights, idx = probs.topk(self.top_k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        load = torch.bincount(idx.flatten(), minlength=probs.size(-1))
        if load.max().item() > 4 * load.float().mean().item():
            logger.warning("router collapsed: max load %d", load.max().item())
        return weights, idx


class MoE(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.router = Router(config.dim, config.n_experts, config.top_k)
        self.experts = nn.ModuleList([Expert(config.dim, config.hidden) for _ in range(config.n_experts)])
        self.calls = 0

    def forward(self, x):
        b, t, d = x.shape
        flat = x.view(-1, d)
        weights, idx = self.router(flat)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            rows, slot = torch.where(idx == i)
            if rows.numel() == 0:
                continue
            out[rows] += weights[rows, slot, None] * expert(flat[rows])
        self.calls += 1
        return out.view(b, t, d)
