"""Which memory a tensor has that Dynamo traces with."""

from __future__ import annotations

from typing import Any

import torch


def storage(value: Any) -> int | None:
    """Names the storage of a tensor, by which views are told apart from copies; None for what has none.

    Under `torch.vmap` and the gradient transforms a tensor wraps the one that has a storage, and asking it raises
    (torch 2.13).
    """
    while isinstance(value, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(value):
        value = torch._C._functorch.get_unwrapped(value)
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return None
    return int(value.untyped_storage()._cdata)
