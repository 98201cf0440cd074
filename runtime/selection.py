"""`select`: an `if` in plain Python, and one graph for both sides while compiling, where they agree."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch.nn.modules.batchnorm import _NormBase

from . import mechanism

T = TypeVar("T")


def select(
    test: Any,
    then: Callable[[], T],
    otherwise: Callable[[], T],
    *,
    mixed_grad: bool = False,
    draws: bool = False,
    moving: Callable[[], Sequence[torch.nn.Module]] = tuple,
    unless: Callable[[], Sequence[object]] = tuple,
    any_strides: bool = False,
    records: bool = False,
) -> T:
    """`then() if test else otherwise()`.

    While `torch.compile` traces and `test` is a tensor of one element, both are computed and the result is selected
    with `torch.where`: if what they give has the same structure, types, dtypes, shapes, strides, devices and
    `requires_grad`. Where it has not, the graph breaks here, as an `if` does. With `mixed_grad` one may ask for
    gradients where the other does not: what is selected then always does. With `draws` they may draw from torch's
    default generators: where the graph is run node by node (`eager`, `aot_eager`), these are then as if the side that
    is not taken had not drawn; backends that make code of their own draw for both. What they do to the running
    statistics of the modules that `moving` gives is taken back for the side that is not taken. Where something that
    `unless` gives is not None, such as a cache that they would change, the graph breaks as well. With `any_strides`
    their strides may differ, and what is selected has its own. With `records` both make an object of a dataclass with
    the generated `__init__`, and so does the selection. Other objects are handed on where both give the same one.
    """
    if torch.compiler.is_dynamo_compiling() and isinstance(test, torch.Tensor) and test.numel() == 1:
        permitted = not draws
        if draws and mechanism.available:
            from torch._dynamo.comptime import comptime

            comptime(mechanism.permit)  # binds `permitted` in this frame
        given = [value is not None for value in unless()]
        if permitted and not any(given):
            holds = test.reshape(())
            holds = holds if holds.dtype is torch.bool else holds != 0
            statistics = _statistics(moving())
            first = _state(holds, draws, statistics)
            one = then()
            then_state = _state(holds, draws, statistics)
            _restore(first, None, draws, statistics)
            other = otherwise()
            if _agree(one, other, mixed_grad, any_strides, records):
                _restore(then_state, holds, draws, statistics)
                if _same(one, other):
                    # read all the same: a graph does not draw a random number that nothing depends on
                    torch._assert_async(holds | ~holds, "a test holds, or it does not")
                chosen: T = _where(holds, one, other)
                return chosen
            _restore(first, None, draws, statistics)  # the side that is taken is computed once more
    elif not torch.compiler.is_dynamo_compiling():
        mechanism.hide_made(then, otherwise)
    return then() if test else otherwise()


def _statistics(modules: Sequence[torch.nn.Module]) -> list[torch.Tensor]:
    """What normalising layers move while training."""
    found = []
    for part in [part for module in modules for part in module.modules()]:
        if isinstance(part, _NormBase) and part.training:
            for buffer in (part.running_mean, part.running_var, part.num_batches_tracked):
                if buffer is not None:
                    # a version of its own: the backward pass of a batch norm does not read what is written here
                    found.append(buffer.data)
    return found


def _state(holds: torch.Tensor, draws: bool, statistics: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What a side may move, as it is now: the random number generators first."""
    generators = [mechanism.state_operator(holds)] if draws else []
    return [*generators, *[tensor.clone() for tensor in statistics]]


def _restore(
    state: list[torch.Tensor], where: torch.Tensor | None, draws: bool, statistics: Sequence[torch.Tensor]
) -> None:
    """Puts that back, where a test holds."""
    if draws:
        mechanism.set_operator(state[0], where)
    for tensor, before in zip(statistics, state[1:] if draws else state, strict=True):
        tensor.copy_(before if where is None else torch.where(where, before, tensor))


def _is_record(value: Any) -> bool:
    """Whether a value is an object of a dataclass, which its fields make again."""
    if not dataclasses.is_dataclass(value) or isinstance(value, (type, dict)) or hasattr(value, "__post_init__"):
        return False
    given = [field.init for field in dataclasses.fields(value)]
    return all(given)


def _fields(record: Any) -> dict[str, Any]:
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


def _is_made_by_fields(value: Any) -> bool:
    """Whether a tuple is plain, or a named one that its fields make again; not `torch.return_types.max`, say."""
    if type(value) is tuple:
        return True
    cls = type(value)
    return hasattr(value, "_fields") and (cls.__bases__[0] is tuple or "__new__" not in cls.__dict__)


def _agree(one: Any, other: Any, mixed_grad: bool, any_strides: bool, records: bool = False) -> bool:
    """Whether `torch.where` can stand for a choice between two values. Traced: everything here is known then."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return (
            one.dtype is other.dtype
            and one.shape == other.shape
            and one.layout is other.layout
            and one.device == other.device
            and (mixed_grad or one.requires_grad == other.requires_grad)
            and (any_strides or one.stride() == other.stride())
        )
    if isinstance(one, tuple):
        agreeing = [_agree(a, b, mixed_grad, any_strides) for a, b in zip(one, other, strict=False)]
        return _is_made_by_fields(one) and len(one) == len(other) and all(agreeing)
    if one is None or one is other:
        return True
    if type(one) is list:
        agreeing = [_agree(a, b, mixed_grad, any_strides) for a, b in zip(one, other, strict=False)]
        return len(one) == len(other) and all(agreeing)
    if type(one) is dict:
        return list(one) == list(other) and _agree(list(one.values()), list(other.values()), mixed_grad, any_strides)
    if records and _is_record(one):
        return _agree(_fields(one), _fields(other), mixed_grad, any_strides)
    if isinstance(one, float) and one == 0:  # there are two of them
        return other == 0 and math.copysign(1.0, one) == math.copysign(1.0, other)
    return isinstance(one, (bool, int, float, str)) and one == other


def _same(one: Any, other: Any) -> bool:
    """Whether there is nothing to select: both values hold the same objects, or no tensors."""
    if isinstance(one, tuple):
        same = [_same(a, b) for a, b in zip(one, other, strict=True)]
        return all(same)
    if isinstance(one, (torch.Tensor, list, dict)) or _is_record(one):
        return one is other
    return True


def _where(test: torch.Tensor, one: Any, other: Any) -> Any:
    # Dynamo 2.13 does not trace `is` between two tuples
    if isinstance(one, tuple):
        parts = [_where(test, a, b) for a, b in zip(one, other, strict=True)]
        return type(one)(*parts) if hasattr(one, "_fields") else tuple(parts)
    if one is other:
        return one
    if isinstance(one, torch.Tensor):
        return torch.where(test, one, other)
    if type(one) is list:
        return [_where(test, a, b) for a, b in zip(one, other, strict=True)]
    if type(one) is dict:
        return {key: _where(test, one[key], other[key]) for key in one}
    if _is_record(one):
        return type(one)(**_where(test, _fields(one), _fields(other)))
    return one


# a side that breaks the graph ends the tracing of `select`: the program calls it then, and it is an `if`
mechanism.hide(select.__code__)
