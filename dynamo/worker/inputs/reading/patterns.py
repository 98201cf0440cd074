"""Shapes that einops patterns such as `b c (h p) w -> b (h w) (p c)` speak of."""

from __future__ import annotations

import math
import re
from typing import Any

from .shapes import BATCH, LENGTH
from .usage import Back

Group = tuple[str, ...]

_COUNTS = (2, 1, 4, 8, 16)
"""How many patches there are along each side."""
_CHANNELS = (3, 1)


def groups(side: str) -> list[Group] | None:
    """`b (h w) c` as [("b",), ("h", "w"), ("c",)]; None where there is an ellipsis."""
    if "..." in side or "…" in side:
        return None
    found = re.findall(r"\(([^)]*)\)|(\S+)", side)
    return [tuple(inner.split()) if not single else (single,) for inner, single in found]


def taken(pattern: str, sizes: dict[str, int]) -> list[tuple[int, ...]]:
    """Shapes that a pattern takes, where some of its axes have a size."""
    left = groups(pattern.partition("->")[0])
    found: list[tuple[int, ...]] = []
    for channels in _CHANNELS if left is not None else ():
        for count in _COUNTS:
            free = {"b": BATCH, "n": LENGTH, "t": LENGTH, "c": channels, "channels": channels}
            shape = tuple(
                math.prod(_size(axis, sizes, free, count, alone=len(group) == 1) for axis in group)
                for group in left or ()
            )
            found += [shape] if shape not in found else []
    return found


def _size(axis: str, sizes: dict[str, int], free: dict[str, int], count: int, *, alone: bool) -> int:
    if axis.isdigit():
        return int(axis)
    if axis in sizes:
        return sizes[axis]
    return free.get(axis, 16 if axis in ("h", "w") else LENGTH) if alone else count


def back(pattern: str, sizes: dict[str, int]) -> Back:
    """From the shape that a pattern gives to one that it takes."""
    left, right = (groups(side) for side in (pattern.partition("->")[0], pattern.partition("->")[2]))

    def step(shape: Any) -> Any:
        if left is None or right is None or len(right) != len(shape):
            return None
        known = dict(sizes)
        for group, size in zip(right, shape):  # noqa: B905
            given = math.prod(known[axis] for axis in group if axis in known)
            unknown = [axis for axis in group if axis not in known and not axis.isdigit()]
            if given == 0 or size % given:
                return None
            if not unknown and size != given:
                return None
            known.update(dict.fromkeys(unknown, 1))
            known.update({unknown[0]: size // given} if unknown else {})
        found = [math.prod(known.get(axis, 1 if not axis.isdigit() else int(axis)) for axis in g) for g in left]
        return tuple(found)

    return step
