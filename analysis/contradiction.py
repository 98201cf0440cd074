"""Declarations that are wrong: a parameter is annotated as a tensor, or used like one, and every call in sight passes
something else.

A function that tracing starts at, or that is called with a value nobody knows, is walked with what its declaration
says. Where the calls that are known contradict it, what follows from the declaration alone is not believed.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from graphmend.analysis.activation import Activation, Verdict
from graphmend.analysis.origin import Declared
from graphmend.analysis.values import NONE, UNKNOWN, Choice, Container, Scalar, Static, Tensor, Value, tensor_in

#: (module, qualified name) of a function, and the name of the parameter
Parameter = tuple[tuple[str, str], str]


def rests_on(value: Value) -> frozenset[Parameter]:
    """The parameters whose declarations alone make a value, or a part of it, a tensor."""
    found = set()
    for part in _parts(value):
        first = part.origin.first if part.origin is not None else None
        if isinstance(first, Declared) and isinstance(first.node, str):
            found.add((first.where, first.node))
    return frozenset(found)


class Calls:
    """What the walks that tracing gets to pass to each function."""

    def __init__(self, activations: Iterable[Activation]) -> None:
        self._all = tuple(activations)

    def contradict(self, verdict: Verdict) -> bool:
        """Whether a verdict rests on the declaration of a parameter that all known calls contradict."""
        origin = verdict.breaks.origin.first if verdict.breaks.origin is not None else None
        if not isinstance(origin, Declared) or not isinstance(origin.node, str):
            return False
        passed = [a.env.get(origin.node, UNKNOWN) for a in self._of_function.get(origin.where, ())]
        itself = [tensor_in(v) is not None for v in passed if _is_declared(v, origin)]
        known = [v for v in passed if not _is_declared(v, origin)]
        return all(itself) and any(map(_is_no_tensor, known)) and not any(map(may_hold_tensor, known))

    def may_contradict(self, parameter: Parameter) -> bool:
        """Whether a call that is known passes something else than a tensor for a parameter."""
        where, name = parameter
        return any(_is_no_tensor(a.env.get(name, UNKNOWN)) for a in self._of_function.get(where, ()))

    @cached_property
    def _of_function(self) -> dict[tuple[str, str], list[Activation]]:
        found: dict[tuple[str, str], list[Activation]] = {}
        for activation in self._all:
            info = activation.info
            found.setdefault((info.module.name, info.qualname), []).append(activation)
        return found


def _parts(value: Value) -> tuple[Value, ...]:
    """What a value is made of, as far down as is known."""
    if isinstance(value, Choice):
        return tuple(p for o in value.options for p in _parts(o))
    if isinstance(value, Container):
        inner = (*(value.items or ()), *((value.of,) if value.of is not None else ()), *(value.fields or {}).values())
        return (value, *(p for v in inner for p in _parts(v)))
    return (value,)


def _is_declared(value: Value, origin: Declared) -> bool:
    """Whether a value is what the declaration made of the parameter, and no call's."""
    return any(part.origin is not None and part.origin.first is origin for part in _parts(value))


def may_hold_tensor(value: Value) -> bool:
    """Whether a value is a tensor, or holds one, as far as is known."""
    return any(isinstance(part, Tensor) for part in _parts(value))


def _is_no_tensor(value: Value) -> bool:
    """Whether a value is known to be there, and to be no tensor itself."""
    if isinstance(value, Static):
        return value.type is not None and value is not NONE
    return isinstance(value, (Container, Scalar))
