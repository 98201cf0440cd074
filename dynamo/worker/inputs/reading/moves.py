"""Methods of tensors that move dimensions, or ask for their sizes, and what that says of the tensor."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from . import indexing, usage
from .usage import Ref, Rest, ShapeOf, SizeOf, Unbound, Value

_OTHER = object()


def moved(base: Ref, node: Any, arguments: list[Value]) -> tuple[bool, Value]:
    """Whether a method is one of these, and what it gives."""
    found = _in_one(base, node.args, arguments) if node.func.attr in ("view", "reshape") else _OTHER
    if found is _OTHER:
        found = _moved(base, node.func.attr, [indexing.integer(a) for a in node.args])
    return found is not _OTHER, found


def _in_one(base: Ref, nodes: list[ast.expr], sizes: list[Value]) -> Value:
    """`x.view(B * T, C, H, W)` of sizes of its own, and `x.view(-1, *x.shape[2:])`: what lies in front of the
    dimensions that stay is made into one.
    """
    first = sizes[1] if len(sizes) > 1 else None
    if not isinstance(first, (SizeOf, Rest)) or isinstance(sizes[0], (SizeOf, Rest, tuple)):
        return _OTHER
    own = first.ref.use is base.use and len(first.ref.back) == len(base.back)
    axis = first.axis or 0
    follow = all(isinstance(size, SizeOf) and size.axis == axis + n for n, size in enumerate(sizes[1:]))
    rest = len(sizes) == 2 and isinstance(first, Rest) and isinstance(nodes[1], ast.Starred)
    if not own or axis < 2 or not (follow or rest):
        return _OTHER
    base.has_least(axis + len(sizes) - 1)
    return base.by(usage.merged(0, axis - 1))


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
    if name == "flatten" and len(whole) == len(numbers) == 2 and _is_run(*whole):
        base.has_axis(whole[1] if whole[0] >= 0 else whole[0])
        return base.by(usage.merged(whole[0] if whole[0] >= 0 else whole[1], whole[1] - whole[0]))
    rows = name in ("view", "reshape") and len(numbers) == 2 and numbers[0] == -1
    if rows or (name == "flatten" and whole == [1]):
        return base.by(usage.last_of_two)
    return _OTHER


def _is_run(first: int, last: int) -> bool:
    """Whether dimensions counted from the same end follow each other."""
    return first < last and (first < 0) is (last < 0)


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
