"""`on_host`: a call of a function of NumPy or Python as one node of the graph. Dynamo traces it: keep it plain."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch

from . import mechanism

F = TypeVar("F", bound=Callable[..., Any])


def on_host(size: Callable[..., Sequence[int]], dtype: torch.dtype) -> Callable[[F], F]:
    """Decorates a function that gives a NumPy array of `size(*args, **kwargs)` and of the NumPy counterpart of `dtype`.

    In plain Python its calls stay as they are. While `torch.compile` traces, a call becomes a node of the graph, which
    calls the function each time the graph runs, in the order of the program: random numbers, exceptions and warnings
    are those of plain Python. No gradients flow through it. A result of another size or dtype raises RuntimeError.
    What `emit` cannot carry as an argument breaks the graph, as the call without the decorator did.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if not torch.compiler.is_dynamo_compiling():
                return function(*args, **kwargs)
            return _traced(function, size, dtype, args, kwargs)

        return call  # type: ignore[return-value]

    return decorate


def _traced(
    function: Callable[..., Any],
    size: Callable[..., Sequence[int]],
    dtype: torch.dtype,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    site = tensors = numbers = None
    if mechanism.available:
        from torch._dynamo.comptime import comptime

        comptime(mechanism.capture)  # binds the three names above in this frame
    if site is None:
        return function(*args, **kwargs)
    given = tensors or (torch.empty(0, device="cpu"),)
    return mechanism.host_operator(site, given, numbers, list(size(*args, **kwargs)), dtype).numpy()
