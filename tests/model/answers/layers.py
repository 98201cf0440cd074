"""Layers that break the graph, each with answers in `good` and `wrong`, named after it."""

import warnings

import torch
from torch import nn


# graphmend: example TopMean()(torch.randn(6, 8, requires_grad=True))
class TopMean(nn.Module):
    def forward(self, x):
        scores = x.norm(dim=-1)
        keep = scores > scores.mean()
        n = int(keep.sum())
        if n == 0:
            return x.mean(0)
        return x[keep].sum(0) / n


# graphmend: example Counts()(torch.randint(0, 10, (2, 5)))
class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, ids):
        counts = {}
        for i in ids.flatten().tolist():
            counts[i] = counts.get(i, 0) + 1
        w = torch.tensor([[counts[i] for i in row] for row in ids.tolist()], dtype=torch.float32)
        return self.table(ids) / w.unsqueeze(-1)


# graphmend: example Ema()(torch.randn(5, 8, requires_grad=True), torch.tensor([True, False, True, True, False]))
class Ema(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x, mask):
        picked = x[mask.bool()]
        if picked.shape[0] > 0:
            self.mean = 0.9 * self.mean + 0.1 * picked.mean(0).detach()
        return x - self.mean


# graphmend: example Noise()(torch.randn(5, 8))
class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        if self.training and x.std().item() < 0.001:
            x = x + torch.randn_like(x) * 0.1
        return self.lin(x)


# graphmend: example Split()(torch.randn(7, 8, requires_grad=True), torch.tensor([3, 4]))
class Split(nn.Module):
    def forward(self, x, lengths):
        parts = torch.split(x, lengths.tolist())
        return torch.stack([p.sum(0) for p in parts])


# graphmend: example Middle()(torch.randn(4, 4, requires_grad=True))
class Middle(nn.Module):
    def forward(self, x):
        m = sorted(x.flatten().tolist())[x.numel() // 2]
        return x - m


# graphmend: example Best()(torch.randn(5, 4, requires_grad=True))
class Best(nn.Module):
    def forward(self, x):
        best, place = -1e30, 0
        for i, row in enumerate(x):
            v = row.sum().item()
            if v > best:
                best, place = v, i
        return x[place] * best


# graphmend: example Last()(torch.randn(3, 4), torch.tensor(3))
class Last(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = 0

    def forward(self, x, scale):
        s = scale.item()
        self.last = s
        return x * s if s % 2 == 0 else x + s


# graphmend: example Log()(torch.rand(3, 4, requires_grad=True) + 0.5)
class Log(nn.Module):
    def forward(self, x):
        if x.requires_grad and (x.detach() > 0).all():
            return x.log()
        return x.clamp(min=1e-6).log()


# graphmend: example Halve()(torch.randn(3, 4, requires_grad=True) * 4)
class Halve(nn.Module):
    def forward(self, x):
        n = 0
        while x.abs().max() > 1 and n < 10:
            x = x / 2
            n += 1
        return x


# graphmend: example Double()(torch.randn(3, 4))
class Double(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x.mul_(2)
        return x


# graphmend: example Steps()(torch.randn(3, 4), torch.tensor([1, 3, 2]))
class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def forward(self, x, steps):
        rows = []
        for row, n in zip(x, steps.tolist()):
            for _ in range(min(n, 4)):
                row = torch.tanh(self.cell(row))
            rows.append(row)
        return torch.stack(rows)


# graphmend: example Clipped()(torch.randn(3, 4, requires_grad=True))
class Clipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.clipped = 0

    def forward(self, x):
        norm = float(x.detach().norm())
        if norm > 1.0:
            self.clipped += 1
            x = x / norm
        return x


# graphmend: example Trim()(torch.rand(4, 6), 0.5)
class Trim(nn.Module):
    def forward(self, x: torch.Tensor, top: float = 0.5):
        out = []
        for row in x:
            if row.max().item() > top:
                row = row - row.mean()
            else:
                row = row * 1
            out.append(row)
        return torch.stack(out)


# graphmend: example Norms()(torch.randn(4, 6))
class Norms(nn.Module):
    def forward(self, x: torch.Tensor):
        n = x.norm().item()
        if n < 1e-8:
            return torch.zeros_like(x)
        return x / n


# graphmend: example Quota()(torch.tensor([3, 1, 2]), torch.randn(3, 4))
class Quota(nn.Module):
    def forward(self, sizes: torch.Tensor, x: torch.Tensor):
        left = 4
        rows = []
        for i in range(sizes.shape[0]):
            take = min(int(sizes[i]), left)
            left = left - take
            rows.append(x[i] * take)
        return torch.stack(rows)


# graphmend: example Clamp()(torch.randn(3, 4, requires_grad=True))
class Clamp(nn.Module):
    def forward(self, x: torch.Tensor):
        low = x.min().item()
        high = x.max().item()
        if high - low < 0.001:
            return x * 0.5
        return (x - low) / (high - low)


# graphmend: example Decay(4)(torch.randn(5, 4), True)
class Decay(nn.Module):
    def __init__(self, size: int = 4):
        super().__init__()
        self.lin = nn.Linear(size, size)
        self.rate = 0.9

    def forward(self, x: torch.Tensor, use: bool = True):
        h = self.lin(x)
        k = (h > 0).sum().item()
        if use and k > h.numel() // 2:
            h = h * self.rate ** k
        else:
            h = h + 1
        return h


# graphmend: example Pick()(torch.randn(2, 5), torch.tensor([1, 4]))
class Pick(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor):
        out = x.new_zeros(index.shape[0])
        for i, j in enumerate(index.tolist()):
            out[i] = x[i][j] if j > 0 else -1.0
        return out


# graphmend: example Norm2(4)(torch.randn(3, 4))
class Norm2(nn.Module):
    def __init__(self, size: int = 4):
        super().__init__()
        self.register_buffer("top", torch.tensor(1.0))

    def forward(self, x: torch.Tensor):
        m = x.abs().max().detach()
        if self.training and m.item() > self.top.item():
            self.top.fill_(m)
        return x / self.top


# graphmend: example Warned()(torch.randn(3, 4))
class Warned(nn.Module):
    def forward(self, x: torch.Tensor):
        n = int((x > 0).sum())
        if n < 20:
            warnings.warn(f"only {n} are positive", stacklevel=2)
        return x / max(n, 1)
