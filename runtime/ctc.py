"""`ctc_loss`: `torch.nn.functional.ctc_loss` as a node of the graph. Dynamo traces it: keep it plain.

torch 2.13 has no kernel that tells the shapes of `_ctc_loss`, as one of its results is as long as the longest target,
so that TorchDynamo breaks the graph there. The losses themselves have the size of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, cast

import torch
from torch.nn import functional as F

from . import mechanism


def ctc_loss(
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    input_lengths: torch.Tensor | Sequence[int],
    target_lengths: torch.Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
    *,
    cudnn: bool = True,
) -> torch.Tensor:
    """As `torch.nn.functional.ctc_loss`; without `cudnn`, as it is under `torch.backends.cudnn.flags(enabled=False)`.

    While `torch.compile` traces, the losses of a batch, `log_probs` of shape (T, N, C), are a node of the graph, whose
    backward runs the forward once more. Gradients of gradients raise there. Where cuDNN may compute it, under autocast
    and for a single sequence it is called as ever, and breaks the graph.
    """
    if (
        not torch.compiler.is_dynamo_compiling()
        or not mechanism.available
        or log_probs.dim() != 3
        or (cudnn and log_probs.is_cuda)
        or torch.is_autocast_enabled(log_probs.device.type)
    ):
        with nullcontext() if cudnn else torch.backends.cudnn.flags(enabled=False):
            inputs, lengths = cast("tuple[torch.Tensor, ...]", (input_lengths, target_lengths))
            return F.ctc_loss(log_probs, targets, inputs, lengths, blank, reduction, zero_infinity)
    inputs, lengths = (
        given if isinstance(given, torch.Tensor) else torch.tensor(given) for given in (input_lengths, target_lengths)
    )
    losses: torch.Tensor = torch.ops.graphmend.ctc_losses(log_probs, targets, inputs, lengths, blank, zero_infinity)
    if reduction == "none":
        return losses
    if reduction == "sum":
        return losses.sum()
    if reduction == "mean":
        return (losses / lengths.to(losses).clamp(min=1)).mean()
    raise ValueError(f"{reduction} is not a valid value for reduction")


def _losses(
    log_probs: torch.Tensor, targets: torch.Tensor, inputs: torch.Tensor, lengths: torch.Tensor, *options: Any
) -> torch.Tensor:
    with torch.backends.cudnn.flags(enabled=False):
        return F.ctc_loss(log_probs, targets, inputs, lengths, options[0], "none", options[1])


def _gradient(
    gradient: torch.Tensor,
    log_probs: torch.Tensor,
    targets: torch.Tensor,
    inputs: torch.Tensor,
    lengths: torch.Tensor,
    *options: Any,
) -> torch.Tensor:
    spans = inputs.tolist(), lengths.tolist()
    losses, alpha = torch.ops.aten._ctc_loss(log_probs, targets, *spans, *options)
    found: torch.Tensor = torch.ops.aten._ctc_loss_backward(
        gradient, log_probs, targets, *spans, losses, alpha, *options
    )
    return found.contiguous()


def _saved(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])
    ctx.options = inputs[4:]


def _backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    found = torch.ops.graphmend.ctc_gradient(gradient.contiguous(), *ctx.saved_tensors, *ctx.options)
    return (found, *[None] * 5)


def _define() -> None:
    if not mechanism.available:
        return
    from torch.library import Library, register_autograd, register_fake

    library = Library("graphmend", "FRAGMENT")  # type: ignore[no-untyped-call]
    given = "Tensor log_probs, Tensor targets, Tensor inputs, Tensor lengths, int blank, bool zero_infinity) -> Tensor"
    for name, first, function in (("ctc_losses", "", _losses), ("ctc_gradient", "Tensor gradient, ", _gradient)):
        library.define(f"{name}({first}{given}")  # type: ignore[no-untyped-call]
        library.impl(name, function, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    register_fake("graphmend::ctc_losses", lambda log_probs, *_: log_probs.new_empty(log_probs.shape[1]), lib=library)
    register_fake(
        "graphmend::ctc_gradient", lambda _, log_probs, *__: log_probs.new_empty(log_probs.shape), lib=library
    )
    register_autograd("graphmend::ctc_losses", _backward, setup_context=_saved, lib=library)
    _keep.append(library)


_keep: list[Any] = []
"""A library takes its operators along when it is collected."""

_define()
mechanism.hide(ctc_loss.__code__)
