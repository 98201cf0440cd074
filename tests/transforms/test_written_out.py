"""Functions of torch that take Python numbers alone, written out with 0-d tensors: judged compiled, and in eager mode
with tensors of every dtype and size.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from bodies import bodies, function
from judge import judge, mend_text, nested, torch

_INPUTS = "[(torch.randn(4, 3), torch.randn(4, 3), torch.tensor(0.5), torch.tensor(2))]"


def inputs() -> list[tuple[Any, ...]]:
    x, y = torch.randn(4, 3), torch.randn(4, 3)
    x[0, 0] = 0.0
    return [
        (x.requires_grad_(), y, torch.tensor(0.5), torch.tensor(2)),
        (torch.randn(4, 3), torch.randn(4, 3), torch.tensor(0.125, dtype=torch.float64), torch.tensor(1)),
    ]


#: one element at a time, or reduced to a loss
EACH = bodies("""
# leaky_relu
return F.leaky_relu(x, s.item())

# leaky_relu_of_a_name
slope = 2 * s.abs().item()
return F.leaky_relu(x, negative_slope=slope, inplace=False)

# elu
return F.elu(x, alpha=float(s))

# hardshrink
return F.hardshrink(x, s.item()) * 2

# softshrink
width = s.item()
return F.softshrink(x, lambd=width)

# threshold
return F.threshold(x, s.item(), 0.25), F.threshold(y, threshold=s.item(), value=-1.0)

# huber
return F.huber_loss(x, y, delta=s.item())

# huber_summed
width = 2 * s.item()
return F.huber_loss(x, y, reduction="sum", delta=width) / 2

# smooth
return F.smooth_l1_loss(x, y, beta=s.item(), reduction="none")

# margin
return F.margin_ranking_loss(x, y, y.sign(), margin=s.item())

# scaled
return x.add(y, alpha=1 - s.item()), torch.sub(x, y, alpha=s.item())

# scaled_products
v = s.item()
return torch.addcmul(x, x, y, value=v), torch.addcdiv(x, y, y.abs() + 1, value=v)

# in_place
v = s.item()
shadow = y.clone()
shadow.mul_(v).add_(x, alpha=1 - v)
shadow.sub_(y, alpha=v).div_(v).clamp_(max=v)
shadow.addcmul_(x, y, value=v).addcdiv_(x, y.abs() + 1, value=v)
return shadow.lerp_(y, v)

# of_two_precisions
v = s.item()
coarse = x.half()
shadow = y.clone().double().add_(coarse, alpha=v)
return shadow.sub(coarse, alpha=v), y.float().add(coarse, alpha=1e-3 * v)

# between
weight = s.item()
return x.lerp(y, weight), torch.lerp(x, y, 1 - weight)

# filled
v = s.item()
return torch.full_like(x, v), x.new_full((2,), v)

# quantile
if x.dtype.itemsize < 4 or x.numel() == 0:
    return x
return x.flatten().quantile(s.item()), torch.quantile(x, q=float(s), dim=0) if x.dim() else x
""")

#: parts of a tensor, and what is made of numbers alone
PARTS = bodies("""
# apart
return F.triplet_margin_loss(x, y, y + 1, margin=s.item())

# spaced
lo, hi = x.min().item(), x.max().item()
return torch.linspace(lo, hi, 5), torch.linspace(start=0, end=hi, steps=3), torch.linspace(lo, 2.5, steps=4)

# narrow_to
return x.narrow(0, 0, n.item()).sum(0), x.narrow(1, 1, int(n)).mean()

# narrow_from
at = n.item() - 1
return x.narrow(0, at, 2) * 2, y.narrow(-1, at, 1)

# rolled
by = int(n)
return x.roll(by, 0), torch.roll(x, shifts=-by, dims=-1), x[:, 0].roll(by)

# selected
at = n.item()
return x.select(1, at - 1)

# greatest
k = int(n)
values, _ = x[:, 0].topk(k)
return values.sum(), x.flatten().topk(k).values.mean(), x[1].topk(k, largest=False)[0].max()

# in_order
k = int(n)
least, _ = torch.kthvalue(x, k, 0)
return least, x.kthvalue(k).values, x.sort().values.kthvalue(k, dim=0)[0] * 2

# band
width = n.item()
inside = torch.ones(4, 3).tril(width) - torch.ones(4, 3).tril(diagonal=-width)
return x * inside, torch.triu(x, -width + 1), (x > 0).triu(width)

# greatest_share
k = int(s * x.numel())
return x.flatten().topk(k).values.sum()
""")


def text(body: str) -> str:
    return function(body, "x, y, s, n", _INPUTS)


@pytest.mark.torch
@pytest.mark.parametrize("body", (EACH | PARTS).values(), ids=EACH | PARTS)
def test_holds(body: str) -> None:
    judge(text(body), inputs)


def both(body: str) -> tuple[Any, Any, set[str]]:
    """The function of tensors of which nothing is known, as it is, and mended, and in which kinds they differ."""
    any_tensors = function(body, "x: torch.Tensor, y: torch.Tensor, s: torch.Tensor, n: torch.Tensor")
    mended = mend_text(any_tensors)
    assert mended.changed
    kinds = {str(d.kind) for applied in mended.applied for d in applied.fix.differences}
    return nested(any_tensors), nested(mended.source.text), kinds


@pytest.mark.torch
@pytest.mark.parametrize("body", EACH.values(), ids=EACH)
def test_of_any_dtype_and_size(body: str) -> None:
    before, after, kinds = both(body)
    for name, size in itertools.product(("float16", "bfloat16", "float32", "float64"), ((), (0,), (4, 3), (2, 0, 3))):
        of = getattr(torch, name)
        x, y = torch.randn(size).to(of), torch.randn(size).to(of)
        for s in (torch.tensor(0.5), torch.tensor(0.3, dtype=torch.float64), torch.tensor([0.75]), torch.tensor(1)):
            wanted, got = before(x, y, s, None), after(x, y, s, None)
            close = {"rtol": 2e-2, "atol": 2e-2} if of.itemsize < 4 else {"rtol": 1e-5, "atol": 1e-5}
            torch.testing.assert_close(got, wanted, equal_nan=True, check_dtype="dtype" not in kinds, **close)


@pytest.mark.torch
@pytest.mark.parametrize("body", EACH.values(), ids=EACH)
def test_nothing_that_they_are_given_changes(body: str) -> None:
    _, after, _ = both(body)
    x, y, s = torch.randn(4, 3), torch.randn(4, 3), torch.tensor(0.5)
    kept = x.clone(), y.clone(), s.clone()
    value = after(x, y, s, None)
    for one in value if isinstance(value, tuple) else (value,):
        one.zero_()
    assert all(torch.equal(a, b) for a, b in zip((x, y, s), kept, strict=True))


@pytest.mark.torch
def test_a_loss_of_no_width() -> None:
    before, after, _ = both(EACH["smooth"])
    y, seen = torch.tensor([0.0, 1.0, -2.0]), []
    for loss in (before, after):
        x = torch.zeros(3, requires_grad=True)
        loss(x, y, torch.tensor(0.0), None).sum().backward()
        seen.append(x.grad)
    assert torch.equal(*seen)


NUMBERS = bodies("""
# in_place
return F.leaky_relu(x.clone(), s.item(), inplace=True)

# weighted
return F.huber_loss(x, y, delta=s.item(), weight=y)

# drawn
return F.leaky_relu(torch.randn_like(x), s.item())

# several_moved
return x.roll((int(n), 1), (0, 1))

# places_read
values, at = x[:, 0].topk(int(n))
return values.sum() + at.sum()

# greatest_of_rows
return x.topk(int(n)).values
""")


@pytest.mark.parametrize("body", NUMBERS.values(), ids=NUMBERS)
def test_stays(body: str) -> None:
    assert not mend_text(text(body)).changed
