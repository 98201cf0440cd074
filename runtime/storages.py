"""Which memory a tensor has that Dynamo traces with, and which operations write to it."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.fx import Node


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


_IN_PLACE = frozenset(
    getattr(operator, f"i{name}")
    for name in "add sub mul matmul truediv floordiv mod pow and or xor lshift rshift".split()
)


def written(node: Node) -> list[Node]:
    """The arguments of an operation that it may write to, by the names that torch gives to those that write."""
    name = str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", "")
    in_place = node.target in _IN_PLACE or name == "setitem" or (name.endswith("_") and not name.endswith("__"))
    out = node.kwargs.get("out")
    found = [*(node.args[:1] if in_place else ()), *(out if isinstance(out, (tuple, list)) else [out])]
    return [each for each in found if isinstance(each, Node)]
