"""Recurrent layers in the graph: their kernels become operators (`graphmend.runtime.recurrent`), where these fit.

TorchDynamo 2.13 inlines `nn.LSTM` and the others with `torch._dynamo.config.allow_rnn`. Others than these do not come
in, nor those that would be slower in the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch._dynamo import config
from torch._dynamo.variables.builder import VariableBuilder
from torch.fx import Node
from torch.nn.modules import rnn

from .. import mechanism, recurrent
from .attempt import current

_KINDS: dict[Any, str] = {kernel: kind for kind, kernel in recurrent.KERNELS.items()}
#: of what a kernel is given: the input, its state, the weights, then whether there are biases
_BIASES, _DROPOUT, _TRAIN, _COUNT = 3, 5, 6, 9


def is_recurrent(node: Node) -> bool:
    """Is an operation of the graph the kernel of a recurrent layer?"""
    return node.op == "call_function" and node.target in _KINDS


def install() -> Callable[[], None]:
    """Hooks into where Dynamo takes in a module; the result undoes it."""
    original = VariableBuilder.wrap_module

    @functools.wraps(original)
    def wrap_module(self: Any, value: torch.nn.Module) -> Any:
        attempt = current()
        if attempt is None or not isinstance(value, rnn.RNNBase):
            return original(self, value)
        reason = _kept_out(value, attempt.trains_whole)
        if reason is not None:
            attempt.leaves(asked_at(self.tx), reason)
        with config.patch(allow_rnn=reason is None):
            return original(self, value)

    def remove() -> None:
        VariableBuilder.wrap_module = original  # type: ignore[method-assign]

    VariableBuilder.wrap_module = wrap_module  # type: ignore[method-assign]
    return remove


def _kept_out(layer: rnn.RNNBase, trains_whole: bool) -> str | None:
    """Why a layer does not come into the graph: Dynamo ends it there, as it does without us."""
    if type(layer) not in (rnn.LSTM, rnn.GRU, rnn.RNN):  # a parametrized one computes its weights when they are read
        return "a recurrent layer of another class"
    if torch.is_autocast_enabled(next((p.device.type for p in layer.parameters()), "cpu")):
        return "a recurrent layer is called under autocast"
    if layer.training and torch.is_grad_enabled():
        if layer.dropout:
            return "a recurrent layer draws for its dropout, and would draw again for its gradients"
        if not trains_whole:
            return "a recurrent layer trains: its forward would run twice (--unsafe permits it)"
    return None


def keep_whole(node: Node) -> str | None:
    """Makes the kernel of a recurrent layer an operator; where none does the same, says why."""
    kind, given = _KINDS[node.target], node.args
    if (reason := _unlike(node)) is not None:
        return reason
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
