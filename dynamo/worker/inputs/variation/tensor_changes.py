"""What a variant does to one tensor: floating-point numbers, masks and integers each have changes of their own."""

from __future__ import annotations

from collections.abc import Callable

import torch


def is_mask(tensor: torch.Tensor) -> bool:
    """Booleans, and integers that are only 0 and 1 (attention masks; token ids go higher)."""
    if tensor.dtype == torch.bool:
        return True
    if tensor.is_floating_point() or tensor.is_complex() or tensor.numel() == 0:
        return False
    return bool(((tensor == 0) | (tensor == 1)).all())


def is_integer(tensor: torch.Tensor) -> bool:
    return tensor.dtype != torch.bool and not tensor.is_floating_point() and not tensor.is_complex()


def _with_nan(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    if changed.numel():
        changed.view(-1)[0] = float("nan")
    return changed


def _some_masked(tensor: torch.Tensor) -> torch.Tensor:
    changed = torch.ones_like(tensor)
    if changed.numel() > 1:
        changed.view(-1)[-1] = 0
    return changed


def _special(tensor: torch.Tensor, sign: float) -> torch.Tensor:
    """NaN, infinities and zero, as far as there are elements left beside them; these have the sign, unless it is 0."""
    changed = tensor.detach().clone(memory_format=torch.contiguous_format)
    if sign and not changed.is_complex():
        changed = changed.abs() * sign
    flat = changed.view(-1)
    for number, value in enumerate((float("inf"), float("nan"), -float("inf"), 0.0)):
        if 2 * number < flat.numel():
            flat[-1 - 2 * number] = value
    return changed


def _drawn(tensor: torch.Tensor, low: int, high: int) -> torch.Tensor:
    """Integers from `low` to `high`, the same for tensors of one shape, on the CPU."""
    return torch.randint(low, high + 1, tensor.shape, device="cpu", generator=torch.Generator().manual_seed(0))


def _signs(tensor: torch.Tensor) -> torch.Tensor:
    return (2 * _drawn(tensor, 0, 1) - 1).to(tensor.device)


def _ties(tensor: torch.Tensor) -> torch.Tensor:
    """Small integers, and each row a second time, turned round: what rows are ordered by is the same for both."""
    drawn = _drawn(tensor, -2, 2)
    half = tensor.shape[0] // 2 if tensor.dim() else 0
    if half:
        drawn[-half:] = drawn[:half].flip(0, -1) if tensor.dim() > 1 else drawn[:half].flip(0)
    if tensor.dim() and tensor.shape[0] > 2 * half > 0:
        drawn[half] = drawn[0]
    return drawn.to(tensor)


def _outlier(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """One row is larger than all others: whatever is counted by its size, there is one of it."""
    changed = tensor.detach().clone()
    if changed.dim() and changed.shape[0]:
        changed[-1] *= factor
    return changed


def _less(tensor: torch.Tensor) -> torch.Tensor:
    """One less, but not less than what is there where that would be below zero: indices stay valid."""
    if tensor.numel() == 0:
        return tensor
    least = tensor.min()
    return tensor - 1 if int(least) > 0 else (tensor - 1).clamp(min=int(least))


def change(kind: str, amount: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """What one kind of variant does to a tensor; nothing where it is about others."""
    on_floats: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "negate": lambda t: -t,
        "scale": lambda t: t * amount,
        "zeros": torch.zeros_like,
        "ones": torch.ones_like,
        "nan": _with_nan,
        "half": lambda t: t.half() if t.is_floating_point() else t,
        "double": lambda t: t.double() if t.is_floating_point() else t,
        "special": lambda t: _special(t, amount),
        "one sign": lambda t: (t.abs() * amount).to(t.dtype),
        "both signs": lambda t: (t.abs() * amount * _signs(t)).to(t.dtype),
        "ties": _ties,
        "equal": lambda t: torch.full_like(t, amount),
        "outlier": lambda t: _outlier(t, amount),
    }
    on_masks: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "masks": lambda t: torch.full_like(t, amount),
        "some masked": _some_masked,
        "inverted": lambda t: (t == 0).to(t.dtype),
    }
    on_integers: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "integers": torch.zeros_like,
        "integers less": _less,
        "integers more": lambda t: t + 1,
        "integers negated": lambda t: -t,
        "reversed": lambda t: t.flip(-1) if t.dim() else t,
        "rolled": lambda t: t.roll(1, -1) if t.dim() else t,
    }

    def changed(tensor: torch.Tensor) -> torch.Tensor:
        if kind == "whole" and tensor.is_floating_point():  # no gradient is wanted of integers
            return (tensor.detach() * amount).round().long()
        if kind in on_floats and (tensor.is_floating_point() or tensor.is_complex()):
            return on_floats[kind](tensor.detach()).requires_grad_(tensor.requires_grad)
        if kind in on_masks and is_mask(tensor):
            return on_masks[kind](tensor)
        if kind in on_integers and is_integer(tensor):
            return on_integers[kind](tensor)
        return tensor

    return changed
