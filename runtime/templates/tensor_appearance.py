"""Gives a tensor back the looks that it has in the user's program.

Below autograd a tensor has no history, so it would print without `requires_grad=True` or `grad_fn=<...>`, and a
parameter as a plain tensor. The looks are seen while tracing and put on again here, on a detached tensor.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import torch


class Appearance(NamedTuple):
    """What the text of a tensor says about its history."""

    requires_grad: bool = False
    grad_fn: str | None = None
    parameter: bool = False
    number: bool = False
    """A Python number that Dynamo carries in a tensor."""
    array: bool = False
    """An array of NumPy, as well."""


def appearance_of(tensor: torch.Tensor) -> Appearance:
    """The look of a (fake) tensor."""
    history = tensor.grad_fn
    return Appearance(
        tensor.requires_grad, type(history).__name__ if history else None, isinstance(tensor, torch.nn.Parameter)
    )


def restore_appearance(tensor: torch.Tensor, appearance: Appearance) -> Any:
    """A tensor with the values of `tensor` and the given look."""
    if appearance.number:
        return tensor.item()
    tensor = tensor.detach()
    if appearance.array:
        return tensor.numpy()
    if appearance.parameter:
        return torch.nn.Parameter(tensor, appearance.requires_grad)
    if not appearance.requires_grad:
        return tensor
    tensor.requires_grad_()
    if appearance.grad_fn is None:
        return tensor
    with torch.enable_grad():
        return _history(appearance.grad_fn).apply(tensor)


@functools.cache
def _history(name: str) -> Any:
    """An autograd function whose nodes are called `name`."""

    class History(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
            return tensor.view_as(tensor)

    History._backward_cls.__name__ = name
    return History
