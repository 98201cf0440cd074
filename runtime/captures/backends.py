"""What a backend does with a graph that captures numbers, watched while it compiles.

AOTAutograd traces the graph once more, and its backward pass: operations that Dynamo has taken may ask for a number
there, or fail. That has to be known before the compiled graph is used: its forward pass can give way to the program's
own code (`recovery`), a backward pass that runs later cannot.

Knows AOTAutograd as it is in torch 2.13.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._functorch import config
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    PendingUnbackedSymbolNotFound,
    PropagateUnbackedSymInts,
    free_unbacked_symbols,
    statically_known_true,
)

from .attempt import Attempt, current
from .recovery import DIVISIONS

_AHEAD = {"force_non_lazy_backward_lowering": True}


class Raises(Exception):
    """A backward pass may divide numbers by zero: Python raises there, where torch's own code does not."""


def install() -> Callable[[], None]:
    """Hooks into AOTAutograd's tracing; the result undoes it."""
    run, divide = PropagateUnbackedSymInts.run_node, ProxyTorchDispatchMode.__sym_dispatch__

    def remove() -> None:
        PropagateUnbackedSymInts.run_node = run  # type: ignore[method-assign]
        ProxyTorchDispatchMode.__sym_dispatch__ = divide  # type: ignore[method-assign]

    PropagateUnbackedSymInts.run_node = _tracing(run)  # type: ignore[method-assign]
    ProxyTorchDispatchMode.__sym_dispatch__ = _dividing(divide)  # type: ignore[method-assign]
    return remove


@contextmanager
def at_work(attempt: Attempt, ahead: bool) -> Iterator[None]:
    """While a backend compiles in here. Ahead of time where the backward pass must not fail later."""
    attempt.compiles, attempt.failing = True, None
    attempt.needed.clear()
    try:
        with warnings.catch_warnings(), config.patch(_AHEAD if ahead else {}):
            if ahead:  # where a gradient asks for a number, that is no error of the program's
                warnings.filterwarnings("ignore", "Error detected in")
            yield
    finally:
        attempt.compiles = False


def _tracing(original: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of the graph, traced once more."""

    @functools.wraps(original)
    def run_node(self: Any, n: Any) -> Any:
        try:
            return original(self, n)
        except (GuardOnDataDependentSymNode, PendingUnbackedSymbolNotFound):
            if (attempt := current()) is not None and attempt.compiles:
                attempt.fails(n)
            raise

    return run_node


def _dividing(original: Callable[..., Any]) -> Callable[..., Any]:
    """Arithmetic on numbers, by formulas of gradients among others."""

    @functools.wraps(original)
    def __sym_dispatch__(self: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        attempt = current()
        if attempt is not None and attempt.compiles and func in DIVISIONS and torch._C._current_autograd_node():
            symbols = free_unbacked_symbols(args[1])
            if symbols and not statically_known_true(args[1] != 0):
                attempt.needed |= symbols
                raise Raises("a gradient divides by it")
        return original(self, func, types, args, kwargs)

    return __sym_dispatch__
