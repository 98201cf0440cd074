"""Recurrent layers in the graph: their kernels become operators (`graphmend.runtime.recurrent`), where these fit.

TorchDynamo 2.13 inlines `nn.LSTM` and the others with `torch._dynamo.config.allow_rnn`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import Node
from torch.nn.modules import rnn

from .. import mechanism, recurrent

_KINDS: dict[Any, str] = {kernel: kind for kind, kernel in recurrent.KERNELS.items()}
#: of what a kernel is given: the input, its state, the weights, then whether there are biases
_BIASES, _DROPOUT, _TRAIN, _COUNT = 3, 5, 6, 9


def is_recurrent(node: Node) -> bool:
    """Is an operation of the graph the kernel of a recurrent layer?"""
    return node.op == "call_function" and node.target in _KINDS


def keep_whole(node: Node, trains: bool) -> str | None:
    """Makes the kernel of a recurrent layer an operator; where none does the same, says why, and, unless it `trains`
    so, where it would be slower.
    """
    kind, given = _KINDS[node.target], node.args
    if (reason := _unlike(node)) is not None:
        return reason
    if given[_TRAIN] and torch.is_grad_enabled() and not trains:
        return "a recurrent layer trains: its forward would run twice (--unsafe permits it)"
    state = list(given[1]) if isinstance(given[1], (tuple, list)) else [given[1]]
    operators = torch.ops.graphmend
    node.target = operators.lstm.default if kind == "LSTM" else operators.recurrent.default
    node.args = (kind, given[0], state, *given[2:])
    return None


def asked_at(tx: Any) -> Any:
    """Where the program calls the layer whose code Dynamo is in."""
    while tx.f_code.co_filename == rnn.__file__ and getattr(tx, "parent", None) is not None:
        tx = tx.parent
    return tx


def _unlike(node: Node) -> str | None:
    given = node.args
    if len(given) != _COUNT or node.kwargs or not isinstance(given[_BIASES], bool):
        return "a recurrent layer is given a packed sequence"
    x = given[0].meta.get("example_value") if isinstance(given[0], Node) else None
    if not mechanism.available or not isinstance(x, torch.Tensor):
        return "a recurrent layer is not understood"
    if given[_TRAIN] and given[_DROPOUT]:
        return "a recurrent layer draws for its dropout, and would draw again for its gradients"
    if torch.is_autocast_enabled(x.device.type):
        return "a recurrent layer is called under autocast"
    if torch._C._functorch.peek_interpreter_stack() is not None:
        return "a recurrent layer is transformed (vmap, grad)"
    return None
