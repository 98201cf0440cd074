"""How far apart two values are, and whether rounding may explain it."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch


class Bounds(NamedTuple):
    """How far rounding goes. Units in the last place: of an element itself, or of the largest element beside it (sums
    cancel). A gradient may be the rounding of larger terms that cancel: so many times what the original itself changes
    by where its inputs change in their last digit, and so many units in the last place of the largest gradient.
    """

    own: int
    beside: int
    sensitive: int
    cancelled: int


FINE = Bounds(64, 8, 16, 1024)
COARSE = dict.fromkeys((torch.float16, torch.bfloat16), Bounds(4, 1, 1, 2))
"""Types of few digits, in which kernels add up in wider ones: more units would be a large part of the value itself."""


class Gap(NamedTuple):
    """The largest difference, also relative to the value (or to what `of` says); `rounding` where every element is
    within the bound.
    """

    largest: float
    relative: float
    rounding: bool
    bound: float
    of: str = "the value"

    def words(self) -> str:
        if self.rounding:
            return f"differs by rounding: by up to {self.relative:.2g} of {self.of} (bound {self.bound:.2g})"
        return f"differs by up to {self.largest:.3g}"


def between(a: torch.Tensor, b: torch.Tensor) -> Gap | None:
    """What lies between two tensors of one shape; None where they are equal, NaN and NaN included. Of two types, the
    one of fewer digits counts.
    """
    a, b = (torch.view_as_real(t.resolve_conj()) if t.is_complex() else t for t in (a, b))
    if a.numel() == 0 or a.shape != b.shape or (a.dtype == b.dtype and torch.equal(a, b)):
        return None
    kinds = [t.dtype for t in (a, b) if t.is_floating_point()]
    exact = not kinds
    coarse = max(kinds, key=lambda kind: torch.finfo(kind).eps) if kinds else a.dtype
    epsilon = 0.0 if exact else torch.finfo(coarse).eps
    own, beside, *_ = COARSE.get(coarse, FINE)
    a, b = a.double(), b.double()
    same = (a == b) | (a.isnan() & b.isnan())
    if bool(same.all()):
        return None
    gap = (a - b).abs().masked_fill(same, 0.0).nan_to_num(nan=float("inf"))
    size = torch.maximum(a.abs(), b.abs())
    finite = size[torch.isfinite(size)]
    scale = float(finite.max()) if finite.numel() else 0.0
    within = (gap <= own * epsilon * size) | (gap <= beside * epsilon * scale)
    rounding = not exact and bool((within & torch.isfinite(gap)).logical_or(same).all())
    relative = float((gap / size.clamp(min=max(scale * 1e-3, 1e-300))).max())
    return Gap(float(gap.max()), relative, rounding, own * epsilon)


def of_terms(gap: Gap, dtype: torch.dtype, noise: float, scale: float) -> Gap:
    """A difference of gradients, where what the original itself changes by (`noise`) may explain it as rounding;
    `scale` is the largest gradient of the same backward pass.
    """
    bounds = COARSE.get(dtype, FINE)
    bound = bounds.cancelled * torch.finfo(dtype).eps
    explained = min(bounds.sensitive * noise, bound * scale)
    if gap.rounding or not gap.largest <= explained < math.inf:
        return gap
    return Gap(gap.largest, gap.largest / scale, True, bound, "the largest gradient")


def between_numbers(a: float, b: float) -> Gap | None:
    """The same for two numbers of Python."""
    if a == b or (math.isnan(a) and math.isnan(b)):
        return None
    return between(torch.tensor([a], dtype=torch.float64), torch.tensor([b], dtype=torch.float64))
