"""`on_host`, `number_on_host` and `stores_on_host`: a call of a function of NumPy or Python as one node of the graph.
Dynamo traces them: keep them plain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import mechanism


def on_host(
    size: int | Sequence[int], dtype: torch.dtype, function: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    """`function(*args, **kwargs)`, which gives a NumPy array of this size and of the NumPy counterpart of `dtype`.

    While `torch.compile` traces, the call becomes a node of the graph, which calls the function each time the graph
    runs, in the order of the program: random numbers, exceptions and warnings are those of plain Python. No gradients
    flow through it. There, a result of another size or dtype raises RuntimeError. What `emit` cannot carry as an
    argument breaks the graph, as the plain call does; arrays are carried where they are not 0-d. The function should do
    no more than draw and compute: `graphmend run` calls it again where a graph cannot go on with the values of a call.
    """
    if not torch.compiler.is_dynamo_compiling():
        return function(*args, **kwargs)
    site = tensors = numbers = None
    if mechanism.available:
        from torch._dynamo.comptime import comptime

        comptime(mechanism.capture)  # binds the three names above in this frame
    if site is None:
        return function(*args, **kwargs)
    given = tensors or (torch.empty(0, device="cpu"),)
    sizes = [size] if isinstance(size, int) else list(size)
    return mechanism.host_operator(site, given, numbers, sizes, dtype).numpy()


def number_on_host(dtype: torch.dtype, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> torch.Tensor:
    """`function(*args, **kwargs)`, which gives a Python number, as a CPU tensor without dimensions, of this dtype.

    While `torch.compile` traces, the call becomes a node of the graph, which calls the function each time the graph
    runs, in the order of the program. What `emit` cannot carry as an argument breaks the graph, as the plain call does.
    The function should do no more than draw and compute, and give numbers that the dtype holds.
    """
    size: tuple[int, ...] = ()
    site = tensors = numbers = None
    if torch.compiler.is_dynamo_compiling() and mechanism.available:
        from torch._dynamo.comptime import comptime

        comptime(mechanism.capture)  # binds `site`, `tensors` and `numbers` in this frame
    if site is None:
        return torch.tensor(function(*args, **kwargs), dtype=dtype, device="cpu")
    given = tensors or (torch.empty(0, device="cpu"),)
    made: torch.Tensor = mechanism.host_operator(site, given, numbers, size, dtype)
    return made


def stores_on_host(
    function: Callable[..., Any], changed: tuple[torch.Tensor, ...], /, *args: Any, **kwargs: Any
) -> tuple[torch.Tensor, ...]:
    """`changed`, after `function(*changed, *args, **kwargs)`, which stores to these tensors in place.

    While `torch.compile` traces, the call becomes a node of the graph, which calls the function each time the graph
    runs, with copies of `changed`, and gives these. No gradients flow through it: none of `changed`, and nothing that
    is stored, may ask for any. What `emit` cannot carry as an argument breaks the graph, as the plain call may do. The
    function should do no more than store and compute.
    """
    if not torch.compiler.is_dynamo_compiling():
        function(*changed, *args, **kwargs)
        return changed
    site = tensors = numbers = None
    args = (*changed, *args)
    if mechanism.available:
        from torch._dynamo.comptime import comptime

        comptime(mechanism.capture)  # binds `site`, `tensors` and `numbers` in this frame
    if site is None or tensors is None:
        function(*args, **kwargs)
        return changed
    given = [tensor.detach() for tensor in tensors]
    return tuple(mechanism.store_operator(site, given, numbers, len(changed)))


mechanism.hide(on_host.__code__, number_on_host.__code__, stores_on_host.__code__)
