"""What an error says of something that inputs were joined to: which sizes lack how much, or are how many times too
large.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from ..reading.shapes import Combination, Tensor, changed, each_changed, one_changed


def features(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """mat1 and mat2 shapes cannot be multiplied (2x4 and 3x50), where no input has 4 features itself"""
    had, wanted = int(found.group(1)), int(found.group(2))
    if had and not any(t.shape[-1:] == (had,) for t in _tensors(combination)):
        yield from _sides(combination, wanted / had)
        yield from _longer(combination, wanted - had)
        yield from _scaled(combination, wanted, had)
        more = wanted - had

        def rows(t: Tensor) -> Tensor | None:
            if t.kind != "float" or len(t.shape) != 3 or t.shape[1] == 0 or more % t.shape[1]:
                return None
            each = t.shape[-1] + more // t.shape[1]
            return t.like((*t.shape[:-1], each)) if each > 0 else None

        yield from each_changed(combination, rows)


def expected(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """input.size(-1) must be equal to input_size. Expected 80, got 16"""
    wanted, had = int(found.group(1)), int(found.group(2))
    yield from each_changed(
        combination, lambda t: t.like((*t.shape[:-1], wanted)) if t.shape[-1:] == (had,) and t.kind == "float" else None
    )
    if not any(t.shape[-1:] == (had,) for t in _tensors(combination)):
        yield from _longer(combination, wanted - had)
        yield from _scaled(combination, wanted, had)


def lacking(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """input has inconsistent input_size: got 69 expected 104: along any axis"""
    more = int(found.group(2)) - int(found.group(1))
    yield from _longer(combination, more)
    yield from _longer(combination, more, axis=1)


def channels(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected input[2, 24, 1, 1] to have 20 channels, but got 24: something was joined to fewer"""
    wanted, had = int(found.group(1)), int(found.group(2))

    for axis in (1, 2):  # of a sequence of images the second is time

        def fewer(t: Tensor, axis: int = axis) -> Tensor | None:
            if len(t.shape) < axis + 2 + (axis > 1) or t.shape[axis] >= had or t.shape[axis] + wanted <= had:
                return None
            return t.like((*t.shape[:axis], t.shape[axis] + wanted - had, *t.shape[axis + 1 :]))

        yield from each_changed(combination, fewer)


def spread(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected input[2, 64, 32, 32] to have 32 channels, but got 64: of several tensors that were joined"""
    wanted, had = int(found.group(1)), int(found.group(2))
    for power in (1, 2):  # what is joined, and products of each with each

        def fitting(t: Tensor, power: int = power) -> Tensor | None:
            channels = round(t.shape[1] * (wanted / had) ** (1 / power)) if len(t.shape) > 1 and had else 0
            fits = channels and channels**power * had == t.shape[1] ** power * wanted and channels != t.shape[1]
            return t.like((t.shape[0], channels, *t.shape[2:])) if fits else None

        yield from each_changed(combination, fitting)


def _sides(combination: Combination, times: float) -> Iterator[Combination]:
    """Images that are so many times larger, where their sides are whole numbers then: of what is flattened."""

    def larger(t: Tensor) -> Tensor | None:
        each = [side * times ** (1 / (len(t.shape) - 2)) for side in t.shape[2:]] if len(t.shape) > 3 else []
        whole = each and all(side >= 1 and math.isclose(side, round(side)) for side in each)
        return t.like((*t.shape[:2], *map(round, each))) if whole else None

    return each_changed(combination, larger)


def _longer(combination: Combination, more: int, axis: int = -1) -> Iterator[Combination]:
    """One tensor at a time with so much more, or less, along an axis."""

    def longer(t: Tensor) -> Tensor | None:
        if t.kind not in ("float", "unit") or len(t.shape) < 2 or t.shape[axis] + more <= 0:
            return None
        at = axis % len(t.shape)
        return t.like((*t.shape[:at], t.shape[at] + more, *t.shape[at + 1 :]))

    for name, value in combination.items():
        each = [changed(value, longer)] if isinstance(value, Tensor) else one_changed(value, longer)
        yield from ({**combination, name: made} for made in each if made is not None)


def _scaled(combination: Combination, wanted: int, had: int) -> Iterator[Combination]:
    """The last dimension as many times larger as what was made of it has to be."""
    return each_changed(
        combination,
        lambda t: (
            t.like((*t.shape[:-1], t.shape[-1] * wanted // had))
            if t.kind == "float" and len(t.shape) > 1 and had and t.shape[-1] * wanted % had == 0
            else None
        ),
    )


def _tensors(combination: Combination) -> list[Tensor]:
    found: list[Tensor] = []

    def keep(t: Tensor) -> None:
        found.append(t)

    for value in combination.values():
        changed(value, keep)
    return found
