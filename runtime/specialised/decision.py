"""What values decided while a frame was traced, and whether those of another call decide the same.

A mask with other paddings mostly answers a question as the one before did ("is any token global?", "are all ones?").
So a guard that holds an input asks that question again, by what the graph computes it with, where the input has other
values than the last that it let through. It can do so where one tensor decides it.

Knows Dynamo's graphs as they are in torch 2.13.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node
from torch.fx.node import map_arg
from torch.utils._python_dispatch import _disable_current_modes

from .replay import Replay, alone

#: operations that a guard runs, each some microseconds; a way that is longer is not gone again for each call
LONGEST = 40

_log = logging.getLogger(__name__)

Used = Callable[[Any], Any]
"""What a frame is compiled for, of a value: a truth, numbers, a shape."""


def asked_again(found: Replay, used: Used) -> Callable[[torch.Tensor], bool] | None:
    """Whether another tensor in the place of the only input decides the same; None where that cannot be asked."""
    if len(found.inputs) != 1 or len(found.way) > LONGEST:
        return None
    try:
        function, decided = _function(found), repr(used(found.value))
    except Exception as error:  # a graph that is not understood must not end the program
        _log.debug("%s cannot be asked again: %s: %s", found.node, type(error).__name__, error)
        return None
    around = alone if found.is_partial else _plainly

    def decides_the_same(value: torch.Tensor) -> bool:
        try:
            with around():
                return repr(used(function(value.clone()))) == decided
        except Exception as error:  # what the program itself would raise for these values: its frame is traced anew
            _log.debug("other values are not understood: %s: %s", type(error).__name__, error)
            return False

    return decides_the_same


@contextmanager
def _plainly() -> Iterator[None]:
    with _disable_current_modes(), torch.no_grad():
        yield


def _function(found: Replay) -> GraphModule:
    """The way to the value as a function of its input, which holds nothing of the graph that it stood in."""
    graph = Graph()
    made: dict[Node, Any] = {}
    for node in found.way:
        if node in found.numbers:
            made[node] = found.numbers[node]
        elif node in found.inputs:
            made[node] = graph.placeholder("value")
        elif node in found.shapes:
            made[node] = graph.get_attr(node.name)
        else:
            args, kwargs = map_arg((node.args, node.kwargs), made.__getitem__)
            make = graph.call_method if node.op == "call_method" else graph.call_function
            made[node] = make(node.target, args, kwargs)  # type: ignore[arg-type]
    graph.output(made[found.node])
    return GraphModule({node.name: shape for node, shape in found.shapes.items()}, graph)
