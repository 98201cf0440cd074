"""Programs in which rewrites ask what they need not ask of the judged bodies."""

from __future__ import annotations

import re
import textwrap

_HEAD = """\
import copy
import random
import types

import torch
from torch import Tensor, nn


"""

#: bodies below their parameters
_FUNCTIONS = """
# x: Tensor, n: Tensor, o: Tensor
other = o.flatten()
z = torch.repeat_interleave(x.flatten(), n, dim=0)
return z + other
# x: Tensor, n: Tensor
weights = x.float()
return torch.bincount(n[n > 0], weights=weights[n > 0], minlength=4)
# n: Tensor
return n * (torch.unique(n).numel() + 1)
# x: Tensor, n: Tensor
t = n.sum().abs()
y = torch.add(x.float(), torch.relu(x), alpha=t)
z = torch.full_like(x, t + 1)
return y + z + torch.nn.functional.leaky_relu(x + 1, t)
# x: Tensor, y: Tensor, n: Tensor
out = x.clone()
for i in set(n.tolist()):
    out[i] = out[i] - y[i]
return out
# n: Tensor
out = torch.zeros(8, dtype=torch.bool)
last = int(n.max())
for i in range(last):
    out[i] = True
return out
# lengths: Tensor
mask = torch.zeros(4, 8, dtype=torch.bool)
for row, length in enumerate(lengths.long().tolist()):
    mask[row, :length] = True
return mask
# x: Tensor, y: Tensor
return sorted([x.mean(), y.mean()])[-1] + random.sample([0.5, 1.5], 1)[0]
# x: Tensor
return x * random.random()
# x: Tensor, y: Tensor
best = sorted([x.mean(), y.mean()])[-1]
return best * 2
# x: Tensor, y: Tensor
return sorted([x * 2, y], key=lambda t: t.sum().item())[-1] + 1
# x: Tensor, n: Tensor
criterion = nn.CTCLoss()
return criterion(x, n, n, n)
# x: Tensor, n: Tensor
total = 0
if x.sum() > 0:
    total = total + x.float().sum() - n.float().sum()
return total + x
# x: Tensor, n: Tensor
return max(x[j].float() for j in range(3) if n[j].item() == 2)
# x: Tensor, n: Tensor
if torch.rand(()).item() < 0.5:
    with torch.no_grad():
        x = x * 2
return x
# x: Tensor, n: Tensor
return x[n > 0, :].view(2, -1, 3)[:, -1, :] + n[n > 0][0]
# x: Tensor, n: Tensor
with torch.backends.cudnn.flags(enabled=False):
    return nn.functional.ctc_loss(x, n, n, n)
# x: Tensor
return x[bool(x.all())]
# x: Tensor, n: Tensor
whole, rest = divmod(n.item(), 3)
return x * whole + rest
# x: Tensor, n: Tensor
for _ in range(n.item()):
    x = x + 1
return x
# x: Tensor, n: Tensor
while n.item() < 3:
    n = n + 1
return x + n
# x: Tensor, n: Tensor
return x - [0.25, 4.0][n.item()]
# x: Tensor
y = x + 1
y.requires_grad = False
return x * 2
# x: Tensor
y = x.detach().requires_grad_(True)
return torch.autograd.grad((y * y).sum(), y)[0]
# x: Tensor
y = x - 1
y.requires_grad = True
return (y * 3).detach()
# x: Tensor
y = x.clone()
y.data = x - 1
return y
# x: Tensor
y = torch.rand(5) * x.sum()
return y, str([y])
# x: Tensor
y = torch.rand(5)
return x + torch.cat([y[y > 0], y[y <= 0]]).sum()
# x: Tensor
p = torch.rand(())
return x if p > 0.25 else x - 1
# x: Tensor, p: float, on: bool
if torch.rand(()) < p and on:
    x = x - 1
return x
# x: Tensor
k = x.sum()
match k:
    case 2:
        y = x - 2
    case _:
        y = x
return y
# x: Tensor, sizes: Tensor
y = torch.rand(5)
return [part.mean() for part in y.split(sizes.tolist())]
# x: Tensor
y = x.clone().random_(1, 9)
return y.shape
# x: Tensor, y: Tensor
bad = not (x.sum().item() > 2)
return y if bad else y * 2
# x: Tensor, a: nn.Linear, b: nn.Linear
net = a if x.sum() > 0 else b
return net(x)
# x: Tensor, chosen: Tensor, layers: nn.ModuleList
out = torch.zeros_like(x)
for e in chosen.unique():
    rows = (chosen == e).nonzero().squeeze(-1)
    out[rows] = layers[e](x[rows])
return out
# x: Tensor, m: Tensor
out = torch.zeros_like(x)
(rows,) = torch.where(m)
y = x[rows] * 2
out.index_add_(0, rows, y)
return out
# x: Tensor, n: Tensor
return (x[:, : n.max()] * 2).sum(1)
# x: Tensor
return torch.tensor([len(x[x > 0]), x.sum().item()])
# x: Tensor
at = (x > 0).nonzero(as_tuple=True)
return torch.tensor([at[0].numel(), x.sum().item()])
# x: Tensor
return torch.combinations(x)
# x: Tensor
with torch.device("cpu"):
    y = torch.zeros(3)
return x + y
# x: Tensor, at: str
with torch.device(at):
    y = torch.zeros(3) + torch.ones(3)
return x + y
# x: Tensor, y: Tensor
keys = x[:, 0].tolist()
y.zero_()
order = sorted(range(len(keys)), key=lambda i: keys[i])
return x[order] + y
# x: Tensor, y: Tensor
order = sorted(range(x.shape[0]), key=lambda i: (x[i, 0].item(), y[i].item()))
return y[order]
# x: Tensor, y: Tensor
gone = x[:, 0] < 0
count = int(gone.sum())
if count > 0:
    x = x.clone()
    x[gone] = y[:count] * 2
return x
# x: Tensor, keep: Tensor
mask = None
if not keep.all():
    gone = keep == 0
    mask = torch.zeros(4)
    mask[gone] = -1e4
return nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
# x: Tensor
s = 3.0 if x.sum() > 1 else 0.2
return x - s
# x: Tensor, y: Tensor, n: Tensor
z = (y if n.item() > 2 else x) if x.sum() > 1 else y.add(n.item())
z += x
return z
# x: Tensor
assert x.numel() < 2 or x.min() > 0
return x
# x: Tensor, y: Tensor
with torch.no_grad():
    m = x < 1
    if m.any():
        x[m] = y[m]
    return x
# x: Tensor, y: Tensor
z = x - 1
if x.mean() > 0:
    z -= y
return z
# x: Tensor
m = x < 0
return x[m].max() + ((x[m] - x[m].sum()) ** 2).sum()
# x: Tensor
p = x[x < 0]
return ((p - p.mean()) ** 2).mean()
# x: Tensor, y: Tensor
for i in range(3):
    if x.sum().item() > 2 and (y.sum().item() * 2) / x.max().item() > 1:
        x = x - 2
    else:
        y = y * 2
        if y.max() > 30:
            break
return x + y
# x: Tensor, y: Tensor, parts: list[Tensor]
if x.sum().item() > 2 and (y.sum().item() * 2) / x.max().item() > 1:
    for p in parts:
        p.mul_(2)
return x
# x: Tensor, parts: list[Tensor]
total = x.clone()
for p in [p for p in parts if p.sum() > 2]:
    total += p.mean()
return total
# x: Tensor, m: Tensor
out = torch.zeros_like(x)
_, rows = torch.where(m)
if rows.numel() > 0:
    out.index_add_(0, rows, x[rows])
return out
# x: Tensor, m: Tensor
out = torch.zeros_like(x)
hit = (m.sum(dim=(-1, -2)) > 0).nonzero()
for e in hit:
    index = e[0]
    at, rows = torch.where(m[index])
    out.index_add_(0, rows, x[rows])
return out
# k: Tensor
return torch.bincount(k, minlength=5) / torch.unique(k).numel()
# x: Tensor
torch._check_tensor_all(x < 9, lambda: "large")
return x
# x: Tensor
if x.min().item() < 2:
    print("small", x.min().item())
return x
# x: Tensor
kept = (x.flatten() > 0).nonzero()[:, 0]
return x.flatten()[kept].sum()
# x: Tensor
m = x.flatten() > 0
kept = m.nonzero().squeeze(1)
m[0] = False
return x.flatten()[kept].mean()
# x: Tensor, n: Tensor, net
if float(x.sum()) > 2 and 1 / n.item() < 3:
    y = net(x)
else:
    y = x
return y
# x: Tensor, n: Tensor, y: Tensor
for i in range(4):
    if float(n) > 2:
        break
    x += y / n.item()
return x
# x: Tensor
if x.sum() > 0:
    s = x.max()
else:
    s = 0.0
return x * s
# x: Tensor, m: Tensor
sizes = [x[x > 0].shape[0], m.max().item()]
return x * max(sizes)
# x: Tensor, m: Tensor
i, j = torch.where(x > 0)
sizes = [len(i), m.max().item()]
return x[i, j].sum() * max(sizes)
"""

#: programs in which something is compiled anew
_AGAIN = (
    """
def double(x):
    return x * 2

def again(x):
    return torch.compile(double, backend=lambda graph, inputs: graph.forward)(x)

def calls():
    for i in range(4):
        again(torch.ones(3))
""",
    """
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x / self.steps


def calls():
    net = torch.compile(Counter())
    for _ in range(3):
        net(torch.ones(4))
""",
    """
@torch.compile
def update(p, rate):
    return p - rate


def calls():
    for i in range(3):
        update(torch.ones(4), 0.5 * i)
""",
    """
@torch.compile
def twice(x):
    return x * 2


def calls():
    for n in (2, 3, 4):
        x = torch.ones(n)
        twice(x)
""",
)

_CLASSES = (
    """
class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.sum = 0

    def forward(self, x: Tensor):
        self.sum += x.mean().item()
        return x
""",
    """
class Rotary(nn.Module):
    def forward(self, x: Tensor, n: Tensor):
        if n.max().item() > 4 and 1 / n.min().item() < 1:
            if not hasattr(self, "long"):
                self.long = x * 2
            self.register_buffer("factor", self.long, persistent=False)
        else:
            self.short = self.short.to(x.device)
            self.register_buffer("factor", self.short, persistent=False)
        return x * self.factor
""",
)


_SPANS = """
import numpy as np


def spans(shape, rate):
    count, length = shape
    found = np.zeros((count, length), dtype=bool)
    for row in range(count):
        found[row, np.random.choice(length, int(rate * length), replace=False)] = True
    return found


@torch.compile
def case(x: Tensor):
    return x * torch.tensor(spans((2, 3), 0.5))
"""
_SHAPE = "    count, length = shape\n"

_HELPED = (
    _SPANS,
    _SPANS.replace(_SHAPE, _SHAPE + "    extra = np.random.rand(1).item()\n"),
    """
KEPT: list = []


@torch.compile
def case(x: Tensor, y: Tensor):
    KEPT.append((y, x.norm().item()))
    return x + 1
""",
    """
METRICS = {"loss": 0.0}


@torch.compile
def case(x: Tensor):
    METRICS["norm"] = x.norm().item()
    return x + 1
""",
    """
def fill(table, gone, rows):
    table[gone] = rows[0]


@torch.compile
def case(x: Tensor, y: Tensor):
    gone = x[:, 0] < 0
    if gone.any():
        fill(x, gone, y)
    return x
""",
    """
from itertools import takewhile


@torch.compile
def case(x: Tensor):
    total = torch.zeros(())
    for v in takewhile(lambda one: one > 0, x):
        total = total + v
    return total
""",
    """
import numpy as np


@torch.compile
def case(x: Tensor, y: Tensor):
    pick = np.random.choice(x.shape[0], size=x.shape[1], replace=False)
    with np.errstate(divide="ignore"):
        curve = np.interp(y.numpy(), [0.0, 1.0], [0.0, 2.0])
    return x[torch.from_numpy(pick)], torch.from_numpy(curve)
""",
    """
def loudness(frame):
    return frame.pow(2).mean()


def loud(frames, floor):
    for frame in frames:
        frame.add_(1)
        if loudness(frame) > floor:
            yield frame


@torch.compile
def case(x: Tensor, frame: Tensor):
    total = torch.zeros(())
    for part in loud(x.unbind(0), frame.mean()):
        total = total + part.sum()
    return total
""",
    """
class Keeper:
    def __init__(self, best):
        self.best = best

    def step(self, loss, other):
        other.add_(1)
        if torch.sum(loss) > 0:
            self.best = loss
        return self.best


@torch.compile
def case(x: Tensor, y: Tensor):
    return Keeper(x).step(y, y + 1)
""",
    """
def picked(x, m):
    return x[m]


def largest(loss, limit):
    loss, _ = torch.sort(loss, descending=True)
    if loss[2] > limit:
        loss = loss[loss > limit]
    else:
        loss = loss[:2]
    return loss


@torch.compile
def case(x: Tensor):
    m = largest(x.flatten(), 0.5).mean()
    return m + picked(x, x > 0.5).sum()
""",
    """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.tensor(False))
        self.register_buffer("loc", torch.zeros(()))

    def initialize(self, x):
        self.loc.copy_(-x.mean())

    def forward(self, x):
        if not self.ready:
            self.initialize(x)
        return x + self.loc


norm = Norm()


@torch.compile
def case(x: Tensor):
    return norm(x)
""",
    """class Guess:
    def __init__(self, score):
        self.score = score

    def __lt__(self, other):
        return self.score < other.score


def doubled(self, x):
    return x * 2 * self.score


@torch.compile
def case(x: Tensor):
    guess = sorted([Guess(2), Guess(1)])[0]
    guess.doubled = types.MethodType(doubled, guess)
    options = types.SimpleNamespace(scale=2)
    return guess.doubled(x) * options.scale
""",
)


def _functions() -> list[str]:
    parts = re.split(r"^# (.+)\n", _FUNCTIONS, flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [f"@torch.compile\ndef case({given}):\n{textwrap.indent(body, '    ')}" for given, body in pairs]


EXAMPLES = tuple(_HEAD + text for text in (*_functions(), *_CLASSES, *_HELPED, *_AGAIN))
