"""Calls with one thing changed of inputs that were made up: whether the code is compiled anew for it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from ..comparison import compare
from ..errors import describe
from ..inputs.examples import Arguments
from ..inputs.variation import variants
from ..inputs.variation.variants import GIVEN
from ..recording import guards
from .fitting import Fit, Run

MOST = 12
SHARE = 0.5
"""Of the time that the check of the target has taken, what these calls may take besides."""
LEAST_SECONDS = 0.4
"""What they may take in any case: a check of a small function takes less than its process does to start."""


class Change(NamedTuple):
    """One thing that another call may bring: in words, in the arguments, and around the call."""

    words: str
    arguments: Arguments
    around: Callable[[], AbstractContextManager[Any]] = nullcontext
    goes_on: bool = False
    """Whether the object is as the last call left it, and not as it was made."""


def vary(fit: Fit, call: Any, until: float) -> list[dict[str, Any]]:
    """Each change once, as far as the time allows: {"change", "recompile": as recorded, or None, "raised"}."""
    given = fit.arguments(Run(0, GIVEN))
    answers: list[dict[str, Any]] = []
    for change in list(changes(given, fit.instance, _defaults(fit.callable, given)))[:MOST]:
        if time.monotonic() > until:
            break
        raised = _tried(fit, change) if not change.goes_on else None
        again = _compiled(fit, call, change) if raised is None else None
        answers.append({"change": change.words, "recompile": again, "raised": raised})
    return answers


def _tried(fit: Fit, change: Change) -> str | None:
    """What the function raises on changed inputs, without being compiled."""
    compare.restore(fit.instance, fit.state)
    variants.seed(0)
    try:
        with torch.compiler.set_stance("force_eager"), change.around():
            fit.callable(*change.arguments[0], **change.arguments[1])
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        return describe(error)
    return None


def _compiled(fit: Fit, call: Any, change: Change) -> dict[str, Any] | None:
    """What the code would be compiled anew for; None where a graph that there is fits. TorchDynamo is asked for the
    guards alone: nothing is compiled."""
    if not change.goes_on:
        compare.restore(fit.instance, fit.state)
    variants.seed(0)
    try:
        with torch.compiler.set_stance("fail_on_recompile"), change.around():
            call(*change.arguments[0], **change.arguments[1])
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # what else differs when compiled is told by the runs that are compared
        return guards.refused(error)
    return None


def _defaults(function: Any, given: Arguments) -> dict[str, Any]:
    """Numbers and bools that are the defaults of what the call does not give, by parameter."""
    for name in ("_orig_mod", "_torchdynamo_orig_callable", "forward"):  # what was compiled, and what is called of it
        function = getattr(function, name, function)
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*given[0], **given[1]).arguments
    except (TypeError, ValueError):  # no signature, or one that lies
        return {}
    left = {name: one.default for name, one in signature.parameters.items() if name not in bound}
    return {name: value for name, value in left.items() if type(value) in (bool, int, float)}


def changes(given: Arguments, instance: Any, defaults: Mapping[str, Any]) -> Iterator[Change]:
    """What may vary between calls, the most usual first. `defaults` are those of parameters that are not given."""
    leaves, shape = tree_flatten(given)

    def changed(new: dict[int, Any]) -> Arguments:
        made: Arguments = tree_unflatten([new.get(i, leaf) for i, leaf in enumerate(leaves)], shape)
        return made

    tensors = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
    if instance is not None:
        yield Change("another call", given, goes_on=True)
    for size in dict.fromkeys(t.shape[0] for t in tensors.values() if t.dim() and t.shape[0] > 1):
        longer = {i: torch.cat([t, t[-1:]]).detach() for i, t in tensors.items() if t.dim() and t.shape[0] == size}
        yield Change(f"a leading size of {size + 1} for {size}", changed(longer))
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, bool):
            yield Change(f"{not leaf} for {leaf}", changed({i: not leaf}))
        elif isinstance(leaf, (int, float)):
            yield Change(f"{leaf + 1} for {leaf}", changed({i: leaf + 1}))
    for name, value in defaults.items():
        other = not value if isinstance(value, bool) else value + 1
        yield Change(f"{name}={other} for {value}", (given[0], {**given[1], name: other}))
    if isinstance(instance, torch.nn.Module):
        yield Change("the module in eval mode", given, lambda: variants.applied(instance, ("eval", 0)))
    yield Change("no gradients", given, torch.no_grad)
    wide = {i: t.mT.contiguous().mT for i, t in tensors.items() if t.dim() > 1 and min(t.shape) > 1}
    for i, turned in list(wide.items())[:1]:
        yield Change(f"the {_nth(i)} tensor not contiguous", changed({i: turned.detach()}))
    for i, t in list(tensors.items())[:1]:
        if t.dtype == torch.float32 and not isinstance(instance, torch.nn.Module):
            yield Change(f"the {_nth(i)} tensor in float64", changed({i: t.detach().double()}))


def _nth(index: int) -> str:
    return ("first", "second", "third")[index] if index < 3 else f"{index + 1}th"
