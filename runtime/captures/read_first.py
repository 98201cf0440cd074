"""Numbers that an operation reads out of tensors that it is given: a node of its own reads each, in front of it.

    pad(x, (0, n))    ->    pad(x, (0, n.item()))

Dynamo leaves the reading inside of the operation, and so has no node that a symbol comes from where the result shows
the symbol in sums and products alone: it ends with `PendingUnbackedSymbolNotFound` then.

Knows Dynamo's graphs and stand-ins as they are in torch 2.13.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo.utils import set_example_value
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import (
    DivideByKey,
    ShapeEnv,
    compute_unbacked_bindings,
    free_unbacked_symbols,
)
from torch.fx.node import map_arg


def unread(node: Node) -> list[Node]:
    """The arguments of an operation that are tensors of one number, which nothing has read yet."""
    found = ((each, each.meta.get("example_value")) for each in node.all_input_nodes)
    return [
        each for each, value in found if isinstance(value, FakeTensor) and not value.dim() and value.item_memo is None
    ]


def shows_all(environment: ShapeEnv, value: Any) -> bool:
    """Does a result show every new symbol by itself?"""
    shown = compute_unbacked_bindings(environment, value, peek=True) or {}
    alone = {symbol for symbol, path in shown.items() if not any(isinstance(key, DivideByKey) for key in path)}
    return alone >= {*_pending(environment)}


def read_first(node: Node, environment: ShapeEnv, asked: list[Node], run: Callable[[], Any]) -> Any:
    """The result of an operation that is given the numbers themselves; `asked` are tensors that it may have read."""
    numbers: dict[Node, Node] = {}
    for each in asked:
        number = each.meta["example_value"].item_memo
        if not isinstance(number, (torch.SymInt, torch.SymFloat)):
            continue
        with node.graph.inserting_before(node):
            numbers[each] = node.graph.call_method("item", (each,))
        numbers[each].stack_trace = node.stack_trace
        own = free_unbacked_symbols(number)
        others = [symbol for symbol in _pending(environment) if symbol not in own]
        _pending(environment)[:] = [symbol for symbol in _pending(environment) if symbol in own]
        set_example_value(numbers[each], number)
        _pending(environment)[:] = others
    first = 1 if node.op == "call_method" else 0
    node.args = (*node.args[:first], *map_arg(node.args[first:], lambda each: numbers.get(each, each)))
    node.kwargs = map_arg(node.kwargs, lambda each: numbers.get(each, each))
    return run()


def _pending(environment: ShapeEnv) -> list[Any]:
    symbols: list[Any] = environment.pending_fresh_unbacked_symbols
    return symbols
