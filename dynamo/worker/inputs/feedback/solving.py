"""Two sizes that an error says differ, and which dimension of which input decides them: one dimension at a time is made
larger, and what that does to the two sizes tells how large it has to be.

So a size is found that no input has itself: features that are joined to others, channels of frames that are folded.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

from ..reading.shapes import Combination, Tensor, changed
from . import frames

LARGEST = 1 << 14
MOST_AXES = 12


class Equation(NamedTuple):
    """Where an error comes from and what kind it is, and two sizes that should have been equal."""

    place: tuple[Any, ...]
    one: int
    other: int


Axis = tuple[tuple[int, int], ...]
"""Dimensions that change together, each of a tensor by its number in the combination."""

_PAIRS = tuple(
    re.compile(pattern)
    for pattern in (
        r"cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)",
        r"to have (\d+) channels, but got (\d+)",
        r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
        r"Expected size (\d+) but got size (\d+)",
        r"[Ee]xpected (\d+),? (?:but )?got (\d+)",
        r"got (\d+),? expected (\d+)",
        r"size (\d+) for operand \d+ which does not broadcast with previously seen size (\d+)",
        r"to be (\d+),? but got (\d+)",
        r"batch1 to be: \[\d+, (\d+)\] got: \[\d+, (\d+)\]",
        r"normalized_shape=\[(\d+)\].* size\[(?:\d+, )*(\d+)\]",
        r"batch_size \((\d+)\) to match target batch_size \((\d+)\)",
        r"shape '\[(?:\d+, )*\d+\]' is invalid for input of size (\d+)",
    )
)


def equation(error: BaseException) -> Equation | None:
    """What an error says of two sizes; None where it says nothing of them."""
    error = error.__cause__ or error
    place = tuple((around[-1].lineno, around[-1].col_offset) for around, _ in frames.inner(error))
    for number, pattern in enumerate(_PAIRS):
        found = pattern.search(str(error))
        if found is not None and len(found.groups()) == 2:
            return Equation((number, place), int(found[1]), int(found[2]))
        if found is not None and (shape := re.search(r"'\[([\d, ]+)\]'", str(error))) is not None:
            return Equation((number, place), math.prod(map(int, shape[1].split(","))), int(found[1]))
    return next((Equation((-1, place), one, other) for one, other in frames.sizes(error)), None)


def axes(combination: Combination) -> list[Axis]:
    """Each dimension but those of batches, alone and then with those of the same size."""
    tensors = _tensors(combination)
    each = [(n, axis) for n, t in enumerate(tensors) for axis in range(len(t.shape) > 1, len(t.shape))]
    sizes = {at: tensors[at[0]].shape[at[1]] for at in each}
    alike = [tuple(at for at in each if sizes[at] == size) for size in dict.fromkeys(sizes.values())]
    return [(at,) for at in each[:MOST_AXES]] + [group for group in alike if len(group) > 1]


def size_of(combination: Combination, axis: Axis) -> int:
    number, dimension = axis[0]
    return _tensors(combination)[number].shape[dimension]


def resized(combination: Combination, axis: Axis, size: int) -> Combination:
    """The combination with another size in these dimensions."""
    number = -1

    def change(t: Tensor) -> Tensor | None:
        nonlocal number
        number += 1
        own = [dimension for n, dimension in axis if n == number]
        return t.like(tuple(size if d in own else s for d, s in enumerate(t.shape))) if own else t

    found = {name: changed(value, change) for name, value in combination.items()}
    return {name: combination[name] if value is None else value for name, value in found.items()}


def solution(before: Equation, after: Equation | None, size: int, step: int) -> int | None:
    """The size that makes both sides equal, from the error before and after a step; None where it does not decide."""
    if after is None or after.place != before.place:
        return None
    slope = (after.one - after.other) - (before.one - before.other)
    lacking = before.other - before.one
    if slope == 0 or lacking * step % slope:
        return None
    found = size + lacking * step // slope
    return found if 0 < found <= LARGEST and found != size else None


def _tensors(combination: Combination) -> list[Tensor]:
    found: list[Tensor] = []

    def keep(t: Tensor) -> None:
        found.append(t)

    for value in combination.values():
        changed(value, keep)
    return found
