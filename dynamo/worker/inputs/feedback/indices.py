"""What an error says of indices: their type, how large they may be, how many there are in each row."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from ..reading.shapes import Combination, Tensor, each_changed


def whole(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """only integer tensors of a single element can be converted to an index: a number, most often the last one"""
    for name, value in reversed(list(combination.items())):
        if isinstance(value, Tensor):
            yield {**combination, name: 2}


def one_a_row(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """shape '[2, 1, 16, 16]' is invalid for input of size 2560: of indices that are one in each row"""
    wanted, had = math.prod(abs(int(n)) for n in found.group(1).split(",")), int(found.group(2))
    times = had // wanted if wanted and had % wanted == 0 else 0
    return each_changed(
        combination,
        lambda t: (
            t.like(tuple(s for n, s in enumerate(t.shape) if n != t.shape.index(times)))
            if t.kind == "int" and len(t.shape) > 1 and times in t.shape
            else None
        ),
    )


def wanted(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int"""
    yield from each_changed(combination, lambda t: t.as_int(8) if t.kind != "int" else None)
    yield from each_changed(combination, lambda t: Tensor("int", t.shape) if t.kind != "int" else None)


def smaller(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """index out of range in self; index 6 is out of bounds for dimension 0 with size 1; Class values must be smaller

    Where small ones are refused, too, they are made alike: a difference of indices may be one itself.
    """
    high = min(2, int(found.group(1) or 2))

    def less(t: Tensor) -> Tensor | None:
        fits = t.kind == "int" and t.high > 1 and high > 0
        return Tensor("int", t.shape, high if t.high > high else 1) if fits else None

    return each_changed(combination, less)


def ascending(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """index 1 is out of bounds for dimension 0 with size 1: the last of these numbers is taken for the largest"""
    return each_changed(
        combination,
        lambda t: Tensor("ascending", t.shape, t.high, t.low) if t.kind == "int" and len(t.shape) == 1 else None,
    )


def fewer(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """index 3 is out of range: of layers, one for each column"""
    most = int(found.group(1))

    def columns(t: Tensor) -> Tensor | None:
        return t.like((*t.shape[:-1], most)) if len(t.shape) > 1 and t.shape[-1] > most > 0 else None

    return each_changed(combination, columns)


def rounded(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """index out of range in self: of numbers among features, which are made whole"""
    return each_changed(combination, lambda t: Tensor("unit", t.shape) if t.kind == "float" else None)


def of_target(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Expected target size [2, 32, 32], got [2, 5, 1]: classes, one for each place; with the dimension of channels that
    masks have, too
    """
    wanted, had = (tuple(int(n) for n in part.split(",")) for part in found.groups())
    for shape in (wanted, (*wanted[:1], 1, *wanted[1:]), (*wanted, 1)):
        yield from each_changed(
            combination,
            lambda t, shape=shape: (  # type: ignore[misc]
                t.like(shape) if t.kind == "int" and t.shape != shape and t.shape[:1] == had[:1] else None
            ),
        )


def one_class(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """0D or 1D target tensor expected, multi-target not supported: one class for each example"""
    for name, value in combination.items():
        if isinstance(value, Tensor) and value.kind == "int" and len(value.shape) > 1:
            yield {**combination, name: value.like(value.shape[:1])}


def one_each(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Tensors must have same number of dimensions: got 3 and 2: features are looked up of one index for each node"""

    def less(t: Tensor) -> Tensor | None:
        return t.like(t.shape[:1]) if t.kind == "int" and len(t.shape) == 2 else None

    yield from each_changed(combination, less)
