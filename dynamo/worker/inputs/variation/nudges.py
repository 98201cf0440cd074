"""The last digit of every number changed: what a result changes by then is as far as its rounding goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ..examples import Arguments


def arguments(given: Arguments) -> Arguments:
    """The same arguments, floating-point tensors nudged."""

    def one(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() or tensor.layout != torch.strided:
            return tensor
        return _nudged(tensor.detach()).requires_grad_(tensor.requires_grad)

    return tree_map_only(torch.Tensor, one, given)  # type: ignore[no-any-return]


@contextmanager
def weights(instance: Any) -> Iterator[None]:
    """The parameters of a module nudged, and then as they were."""
    found = list(instance.parameters()) if isinstance(instance, torch.nn.Module) else []
    kept = [(p, p.data) for p in found if p.is_floating_point() and not torch.nn.parameter.is_lazy(p)]
    for parameter, data in kept:
        parameter.data = _nudged(data)
    try:
        yield
    finally:
        for parameter, data in kept:
            parameter.data = data


def _nudged(tensor: torch.Tensor) -> torch.Tensor:
    """Up or down by one in the last place, by a generator of its own: those of the program stay as they are."""
    generator = torch.Generator().manual_seed(0)
    sign = torch.randint(0, 2, tensor.shape, generator=generator).to(tensor.device, tensor.dtype) * 2 - 1
    return tensor * (1 + sign * torch.finfo(tensor.dtype).eps)
