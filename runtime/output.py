"""`emit`, `emit_if` and `later`, the functions that mended text calls. Dynamo traces them; keep them plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from . import calls, mechanism


class Later(NamedTuple):
    """A call whose result is a part of some output only. Exists while Dynamo traces, and behind a graph break."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        return str(_now(self))

    def __format__(self, spec: str) -> str:
        return format(_now(self), spec)


def emit(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Calls `function`, an output function. While `torch.compile` traces, the call becomes a node of the graph.

    The node runs each time the graph does, in the order of the program, with the values that the tensors have here.
    """
    if not torch.compiler.is_dynamo_compiling():
        calls.call(function, _now(args), _now(kwargs))
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
            *_now(args), **_now(kwargs)
        )  # Dynamo breaks the graph here; the caller calls `emit` in plain Python then


def emit_if(condition: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """`emit` where `condition`, a tensor of one element, holds; while compiled that is asked when the node runs."""
    if not torch.compiler.is_dynamo_compiling():
        if condition:
            calls.call(function, _now(args), _now(kwargs))
        return
    site = tensors = numbers = None
    if mechanism.available:
        from torch._dynamo.comptime import comptime

        comptime(mechanism.capture)
    if site is not None:
        mechanism.operator(site, tensors or (torch.empty(0, device="cpu"),), numbers)
    elif condition:
        function(*_now(args), **_now(kwargs))


def later(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Calls `function`: at once in plain Python; while `torch.compile` traces, when the `emit` around it happens."""
    if torch.compiler.is_dynamo_compiling():
        return Later(function, args, kwargs)
    return function(*_now(args), **_now(kwargs))


def _now(value: Any) -> Any:
    """`value` with every `Later` in it called; the same object where there is none."""
    if type(value) is Later:
        return value.function(*_now(value.args), **_now(value.kwargs))
    if type(value) is tuple or type(value) is list:
        items = [_now(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else type(value)(items)
    if type(value) is dict:
        entries = {key: _now(item) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value


mechanism.hide(emit, emit_if, later, _now, calls.call)
