"""The functions that mended text calls for its output. Dynamo traces them; keep them plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import calls, mechanism
from .deferred import Later, now


def emit(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Calls `function`, an output function. While `torch.compile` traces, the call becomes a node of the graph.

    The node runs each time the graph does, in the order of the program, with the values that the tensors have here.
    """
    if not torch.compiler.is_dynamo_compiling():
        calls.call(function, now(args), now(kwargs))
        return
    site = tensors = numbers = None
    if mechanism.available:
        from torch._dynamo.comptime import comptime

        comptime(mechanism.capture)  # binds the three names above in this frame
    if site is not None:
        # Inductor 2.13 ends the kernel before an operator only if that has a device, which it takes from tensors.
        mechanism.operator(site, tensors or (torch.empty(0, device="cpu"),), numbers)
    else:
        function(
            *now(args), **now(kwargs)
        )  # Dynamo breaks the graph here; the caller calls `emit` in plain Python then


def emit_if(condition: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """`emit` where `condition`, a tensor of one element, holds; while compiled that is asked when the node runs."""
    if not torch.compiler.is_dynamo_compiling():
        if condition:
            calls.call(function, now(args), now(kwargs))
        return
    site = tensors = numbers = None
    if mechanism.available:
        from torch._dynamo.comptime import comptime

        comptime(mechanism.capture)
    if site is not None:
        mechanism.operator(site, tensors or (torch.empty(0, device="cpu"),), numbers)
    elif condition:
        function(*now(args), **now(kwargs))


def emit_when(
    condition: Any, function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], /, **kwargs: Any
) -> None:
    """`emit_if(condition, function, *make(), **kwargs)`, where plain Python calls `make` only if `condition` holds."""
    if not torch.compiler.is_dynamo_compiling():
        if condition:
            mechanism.hide_made(make)
            calls.call(function, now(make()), now(kwargs))
        return
    args = make()
    site = tensors = numbers = None
    if mechanism.available:
        from torch._dynamo.comptime import comptime

        comptime(mechanism.capture)
    if site is not None:
        mechanism.operator(site, tensors or (torch.empty(0, device="cpu"),), numbers)
    elif condition:
        function(*now(args), **now(kwargs))


def later(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Calls `function`: at once in plain Python; while `torch.compile` traces, when the `emit` around it happens."""
    if torch.compiler.is_dynamo_compiling():
        return Later(function, args, kwargs)
    return function(*now(args), **now(kwargs))


mechanism.hide(*(function.__code__ for function in (emit, emit_if, emit_when, later, now, calls.call)))
calls.made.append(mechanism.hide)
