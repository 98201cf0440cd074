"""`nn.LSTM`, `nn.GRU` and `nn.RNN` as one operation of a graph each.

TorchDynamo 2.13 does not take them in, and what AOTAutograd makes of `torch.lstm` has a node for each step in time:
80 steps of a GRU take Inductor two minutes, and an LSTM on a CPU fails where gradients are recorded. The operators here
run the kernels that the layers run; their backward runs the forward once more. Gradients of gradients raise there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from . import mechanism

#: what the layers call, by the kind that they have in `mode`; cells are traced as they are
KERNELS = {"LSTM": torch.lstm, "GRU": torch.gru, "RNN_TANH": torch.rnn_tanh, "RNN_RELU": torch.rnn_relu}
_OPTIONS = "bool biases, int layers, float dropout, bool train, bool two_ways, bool batch_first"
_GIVEN = f"str kind, Tensor x, Tensor[] state, Tensor[] weights, {_OPTIONS}"


def _run(
    kind: str, x: torch.Tensor, state: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], *options: Any
) -> tuple[torch.Tensor, ...]:
    kernel: Any = KERNELS[kind]
    given = list(state) if kind == "LSTM" else state[0]
    found: tuple[torch.Tensor, ...] = kernel(x, given, list(weights), *options)
    return found


def _kernel(*given: Any) -> tuple[torch.Tensor, ...]:
    # what an operator gives is nobody's view: autograd lets nothing change the views of several results in place
    with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.ADInplaceOrView)):
        return _run(*given)


def _fake(
    kind: str, x: torch.Tensor, state: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], *options: Any
) -> tuple[torch.Tensor, ...]:
    """Shapes and strides of the results: measured on CPU, and cuDNN's by its source."""
    *_, two_ways, batch_first = options
    times, batch = (x.shape[1], x.shape[0]) if batch_first else x.shape[:2]
    out = x.new_empty((times, batch, state[0].shape[2] * (2 if two_ways else 1)))
    out = out.transpose(0, 1) if batch_first else out
    return (out, *[one.new_empty(one.shape) for one in state])


def _gradients(gradients: Sequence[torch.Tensor], kind: str, x: torch.Tensor, *more: Any) -> list[torch.Tensor]:
    """The gradients of x, the state and the weights."""
    state, weights, *options = more
    with _recorded():
        given = [tensor.detach().requires_grad_() for tensor in (x, *state, *weights)]
        found = _run(kind, given[0], given[1 : 1 + len(state)], given[1 + len(state) :], *options)
        made = torch.autograd.grad(found, given, list(gradients))
    return [each.contiguous() for each in made]


@contextmanager
def _recorded() -> Iterator[None]:
    """Autograd records what is done in here, although an operator's own kernel runs below it."""
    keys = torch._C.DispatchKey.AutogradFunctionality, torch._C.DispatchKey.ADInplaceOrView
    before = [torch._C._dispatch_tls_is_dispatch_key_excluded(key) for key in keys]
    for key in keys:
        torch._C._dispatch_tls_set_dispatch_key_excluded(key, False)
    try:
        with torch.enable_grad():
            yield
    finally:
        for key, excluded in zip(keys, before, strict=True):
            torch._C._dispatch_tls_set_dispatch_key_excluded(key, excluded)


def _saved(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    kind, x, state, weights, *options = inputs
    ctx.save_for_backward(x, *state, *weights)
    ctx.given = kind, len(state), options


def _backward(ctx: Any, *gradients: torch.Tensor) -> tuple[Any, ...]:
    kind, count, options = ctx.given
    x, *others = ctx.saved_tensors
    state, weights = others[:count], others[count:]
    found = torch.ops.graphmend.recurrent_gradients(list(gradients), kind, x, state, weights, *options)
    return None, found[0], found[1 : 1 + count], found[1 + count :], *[None] * len(options)


def _once(*_: Any) -> Any:
    raise RuntimeError("the gradients of a recurrent layer in a graph are not differentiated (graphmend.runtime)")


def _define() -> None:
    if not mechanism.available:
        return
    from torch.library import Library, register_autograd, register_fake

    library = Library("graphmend", "FRAGMENT")  # type: ignore[no-untyped-call]
    exact = getattr(torch.Tag, "needs_exact_strides", torch.Tag.needs_fixed_stride_order)

    def define(name: str, schema: str, run: Any, fake: Any) -> None:
        library.define(f"{name}{schema}", tags=(exact,))  # type: ignore[no-untyped-call]
        library.impl(name, run, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
        register_fake(f"graphmend::{name}", fake, lib=library)

    for name, results in (("lstm", "(Tensor, Tensor, Tensor)"), ("recurrent", "(Tensor, Tensor)")):
        define(name, f"({_GIVEN}) -> {results}", _kernel, _fake)
        register_autograd(f"graphmend::{name}", _backward, setup_context=_saved, lib=library)
    define(
        "recurrent_gradients",
        f"(Tensor[] gradients, {_GIVEN}) -> Tensor[]",
        _gradients,
        lambda _, kind, x, state, weights, *__: [each.new_empty(each.shape) for each in (x, *state, *weights)],
    )
    register_autograd("graphmend::recurrent_gradients", _once, lib=library)
    _keep.append(library)


_keep: list[Any] = []
"""A library takes its operators along when it is collected."""

_define()
