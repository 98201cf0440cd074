"""Writes numbers into the graph where an operation takes a tensor for its number and Dynamo knows that.

Dynamo knows the number of a tensor that holds a constant, or that was learned (`known_values`): its stand-in carries
it. A backend traces the graph anew, with stand-ins of its own that carry nothing, and would ask in vain.

    torch.linspace(0, 1, steps)    ->    torch.linspace(0, 1, 7)

Knows Dynamo's stand-ins as they are in torch 2.13.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeGuard

import torch
import torch.utils._pytree as pytree
from torch._dynamo.variables import builder as variable_builder
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Node
from torch.fx.node import map_arg

from ..captures.attempt import current
from ..captures.numbers import pending
from ..tracing.storages import written


def install() -> Callable[[], None]:
    """Hooks into Dynamo's computation of stand-ins, below all other hooks; the result undoes it."""
    original = variable_builder.get_fake_value  # type: ignore[attr-defined]
    variable_builder.get_fake_value = _writing(original)  # type: ignore[attr-defined]
    return lambda: setattr(variable_builder, "get_fake_value", original)


def _writing(original: Callable[..., Any]) -> Callable[..., Any]:
    """An operation that comes into the graph."""

    @functools.wraps(original)
    def get_fake_value(node: Node, tx: Any, *args: Any, **kwargs: Any) -> Any:
        run = functools.partial(original, node, tx, *args, **kwargs)
        if current() is None or not (known := _known(node)) or not _asks(run, tx, known):
            return run()
        count = len(pending(tx))
        value, symbols = run(), pending(tx)[count:]
        del pending(tx)[count:]
        before = node.args, node.kwargs
        first = 1 if node.op == "call_method" else 0
        node.args = (*node.args[:first], *_numbers(node.args[first:], known))
        node.kwargs = _numbers(node.kwargs, known)
        try:
            if _appearance(result := run()) == _appearance(value):
                return result
        except Exception:  # it wants a tensor after all
            pass
        node.args, node.kwargs = before
        pending(tx)[count:] = symbols
        return value

    return get_fake_value


def _known(node: Node) -> dict[Node, FakeTensor]:
    """The arguments of an operation that are tensors of one number, which is known."""
    if node.op not in ("call_function", "call_method") or written(node):
        return {}
    found = ((each, each.meta.get("example_value")) for each in node.all_input_nodes)
    return {each: value for each, value in found if _is_known(value)}


def _is_known(value: Any) -> TypeGuard[FakeTensor]:
    if not isinstance(value, FakeTensor) or value.constant is None or value.dim():
        return False
    return value.dtype != torch.bool and not value.is_complex()


def _asks(run: Callable[[], Any], tx: Any, known: dict[Node, FakeTensor]) -> bool:
    """Does an operation ask for the number of one of its arguments?"""
    count = len(pending(tx))
    constants = {each: each.constant for each in known.values()}
    try:
        for each in constants:
            each.constant = None
        run()
        return len(pending(tx)) > count
    except Exception:
        return True
    finally:
        del pending(tx)[count:]
        for each, constant in constants.items():
            each.constant, each.item_memo = constant, None


def _numbers(arguments: Any, known: dict[Node, FakeTensor]) -> Any:
    def number(each: Node) -> Any:
        constant = known[each].constant if each in known else None
        return each if constant is None else constant.item()

    return map_arg(arguments, number)


def _appearance(value: Any) -> Any:
    """What is known of a result, but for the values."""
    return pytree.tree_map_only(torch.Tensor, lambda each: (each.shape, each.stride(), each.dtype, each.device), value)
