"""Which memory a tensor has that Dynamo traces with, and which operations write to it."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_mutation
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


_IN_PLACE = ("add", "sub", "mul", "and", "or", "xor", "floordiv", "truediv", "mod", "pow", "lshift", "rshift")
#: functions that write to their first argument, though their names do not end in an underscore
_WRITES = frozenset([operator.setitem, *(getattr(operator, f"i{name}") for name in _IN_PLACE)])

#: operations that write to their inputs, though no version counts it: the arguments that hold running statistics
STATISTICS = frozenset({"batch_norm", "instance_norm"})


def written(node: Node) -> list[Node]:
    """The arguments that an operation may write to."""
    arguments = node.all_input_nodes
    name = str(node.target) if node.op == "call_method" else getattr(node.target, "__name__", "")
    if node.op == "call_function" and ("out" in node.kwargs or node.target is triton_kernel_wrapper_mutation):
        return arguments  # a Triton kernel's writes are the only ones that no version counts
    if name in STATISTICS:
        return arguments[1:]
    in_place = node.target in _WRITES or (name.endswith("_") and not name.endswith("__"))
    return arguments[:1] if in_place and node.op in ("call_method", "call_function") else []
