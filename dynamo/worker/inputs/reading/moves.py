"""Methods of tensors that move dimensions, or ask for their sizes, and what that says of the tensor."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from . import indexing, usage
from .usage import Ref, ShapeOf, SizeOf, Unbound, Value

_OTHER = object()


def moved(base: Ref, node: Any) -> tuple[bool, Value]:
    """Whether a method is one of these, and what it gives."""
    found = _moved(base, node.func.attr, [indexing.integer(a) for a in node.args])
    return found is not _OTHER, found


def _moved(base: Ref, name: str, numbers: list[int | None]) -> Value:
    whole = [n for n in numbers if n is not None]
    if name == "size":
        if whole:
            base.has_axis(whole[0])
        return SizeOf(base, whole[0]) if whole else ShapeOf(base)
    if name in ("dim", "ndimension") and not numbers:
        return SizeOf(base, None)
    if name == "unbind" and len(whole) == len(numbers):
        return Unbound(base, whole[0] if whole else 0)
    if name in ("transpose", "swapaxes") and len(whole) == 2:
        for axis in whole:
            base.has_axis(axis)
        return base.by(usage.transposed(*whole))
    if name == "permute" and whole and len(whole) == len(numbers):
        base.has_rank(len(whole))
        return base.by(usage.permuted(tuple(whole)))
    if name == "unsqueeze" and whole:
        return base.by(usage.without(whole[0]))
    if name == "squeeze" and whole:
        base.has_axis(whole[0])
        SizeOf(base, whole[0]).must_be(1)
        return base.by(usage.inserted(whole[0], 1))
    rows = name in ("view", "reshape") and len(numbers) == 2 and numbers[0] == -1
    if rows or (name == "flatten" and whole == [1]):
        return base.by(usage.last_of_two)
    return _OTHER


def named_axes(values: Collection[Value], keywords: list[ast.keyword]) -> None:
    """`torch.split(x, 4, dim=2)`, `x.sum(dim=3)`: a dimension that is named is there."""
    for keyword in keywords:
        several = keyword.value.elts if isinstance(keyword.value, (ast.Tuple, ast.List)) else [keyword.value]
        for axis in map(indexing.integer, several) if keyword.arg in ("dim", "axis") else ():
            for value in values if axis is not None else ():
                if isinstance(value, Ref) and axis is not None:
                    value.has_axis(axis)


def axes(args: list[ast.expr]) -> list[ast.keyword]:
    """The dimensions of `x.sum((2, 3))`, as if they were named."""
    return [ast.keyword("dim", arg) for arg in args[:1] if isinstance(arg, (ast.Tuple, ast.List))]
