"""What an error says of the sides of images, of the length of sequences, and of windows over them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..reading.shapes import Combination, Tensor, each_changed


def told(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Input image size (32*32) doesn't match model (224*224)"""
    height, width = int(found.group(1)), int(found.group(2) or found.group(1))
    return each_changed(combination, lambda t: t.like((*t.shape[:-2], height, width)) if len(t.shape) >= 4 else None)


def wider(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Given input size: (64x1x1). Calculated output size: (64x0x0). Output size is too small"""
    lengths = {n: v for n, v in combination.items() if isinstance(v, Tensor) and v.kind == "int" and v.low == 1}
    longer = {n: Tensor("int", v.shape, 4 * v.high, 2 * v.high) for n, v in lengths.items()}
    for first, last in _SIDES_OF:

        def enlarged(t: Tensor, first: int = first, last: int | None = last) -> Tensor | None:
            times = 2 if len(t.shape) == 5 else 4
            made = (*t.shape[:first], *(times * side for side in t.shape[first:last]))
            return t.like((*made, *t.shape[len(made) :])) if t.kind != "int" and len(t.shape) > 3 else None

        yield from each_changed({**combination, **longer}, enlarged)
    yield from each_changed(  # sequences that are taken for images
        {**combination, **longer},
        lambda t: t.like((t.shape[0], 4 * t.shape[1], t.shape[2])) if len(t.shape) == 3 else None,
    )
    yield from each_changed(
        combination, lambda t: t.like((*t.shape[:-1], 4 * t.shape[-1])) if len(t.shape) > 2 else None
    )


_SIDES_OF = ((2, None), (1, -1))
"""Between which dimensions the sides of images lie: behind the channels, or in front of them."""


def windowed(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """maximum size for tensor at dimension 2 is 5 but size is 16: of a window that slides over it"""
    had, wanted = int(found.group(1)), int(found.group(2))
    return each_changed(
        combination, lambda t: t.like(tuple(wanted if s == had else s for s in t.shape)) if had in t.shape else None
    )


def ranked(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """got input with spatial dimensions of [8] and output size of torch.Size([8, 8])"""
    more = found.group(2).count(",") - found.group(1).count(",")
    own = len(found.group(1).split(","))
    return each_changed(
        combination, lambda t: t.of_rank(len(t.shape) + more) if own <= len(t.shape) <= own + 2 else None
    )


def expanded(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expand(torch.FloatTensor{[1, 1, 256]}, size=[2, 8]): something is expanded to a shape of too few dimensions"""
    first, shape = (tuple(map(int, found.group(g).split(","))) for g in (1, 2))

    def raised(t: Tensor) -> Tensor | None:
        made = t.of_rank(len(first)) if t.shape == shape and t.kind == "float" else None
        return (
            made.like((*made.shape[:-1], first[-1] if first[-1] > 1 else made.shape[-1])) if made is not None else None
        )

    return each_changed(combination, raised)
