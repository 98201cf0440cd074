"""Questions about a value as a whole: on which declarations it rests, whether it may hold a tensor, and whether as much
is known of another one."""

from __future__ import annotations

from graphmend.analysis.lattice.evidence import DeclaredEvidence
from graphmend.analysis.lattice.values import Choice, Container, Tensor, Value

#: (module, qualified name) of a function, and the name of the parameter
Parameter = tuple[tuple[str, str], str]


def declared_sources(value: Value) -> frozenset[Parameter]:
    """The parameters whose annotation (or inferred use) is the only evidence that `value`, or a part of it, is a
    tensor. Known calls may contradict that evidence."""
    found = set()
    for part in parts_of(value):
        first = part.origin.first if part.origin is not None else None
        if isinstance(first, DeclaredEvidence) and isinstance(first.node, str):
            found.add((first.where, first.node))
    return frozenset(found)


def parts_of(value: Value) -> tuple[Value, ...]:
    """A value and all that it holds: options of a choice, elements and fields of containers."""
    if isinstance(value, Choice):
        return tuple(p for o in value.options for p in parts_of(o))
    if isinstance(value, Container):
        inner = (*(value.items or ()), *((value.of,) if value.of is not None else ()), *(value.fields or {}).values())
        return (value, *(p for v in inner for p in parts_of(v)))
    return (value,)


def may_hold_tensor(value: Value) -> bool:
    """Whether a value is a tensor, or holds one, as far as is known."""
    return any(isinstance(part, Tensor) for part in parts_of(value))


def alike(a: Value, b: Value) -> bool:
    """Whether the same is known of two values, tokens included."""
    return a is b or (a.key == b.key and list(map(_tokens, parts_of(a))) == list(map(_tokens, parts_of(b))))


def _tokens(part: Value) -> object:
    return (part.rank, part.dtype, part.shape) if isinstance(part, Tensor) else None
