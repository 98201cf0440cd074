"""Operations of torch whose arguments say the sizes of the result."""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from collections.abc import Sequence

from graphmend.analysis.driver.execution.objects import NONE, UNKNOWN, Object, Values
from graphmend.analysis.driver.guards.atoms import Shape, Size, Tensor, only, tensor
from graphmend.analysis.driver.history.joins import Arguments, Keywords

#: the sizes of a result, from those of the operand and the numbers that it is given; None where they do not fit
_Sizes = Function[[Shape, "list[Size]"], "Shape | None"]


def _viewed(shape: Shape, sizes: list[Size]) -> Shape | None:
    if -1 not in sizes:
        return tuple(sizes)
    whole, rest = _product(shape), _product([size for size in sizes if size != -1])
    inferred = whole // rest if whole is not None and rest else None
    return tuple(inferred if size == -1 else size for size in sizes)


def _expanded(shape: Shape, sizes: list[Size]) -> Shape | None:
    kept = [None] * (len(sizes) - len(shape)) + [*shape]
    return tuple(old if new == -1 else new for old, new in zip(kept, sizes, strict=False))


def _repeated(shape: Shape, times: list[Size]) -> Shape | None:
    padded = [1] * (len(times) - len(shape)) + [*shape]
    ahead = [1] * (len(shape) - len(times)) + times
    return tuple(_product(pair) for pair in zip(padded, ahead, strict=True))


def _permuted(shape: Shape, dims: list[Size]) -> Shape | None:
    known = [dim for dim in dims if dim is not None and -len(shape) <= dim < len(shape)]
    return tuple(shape[dim] for dim in known) if len(known) == len(dims) == len(shape) else None


def _flattened(shape: Shape, ends: list[Size]) -> Shape | None:
    first, last = ends if len(ends) == 2 else (ends[0] if ends else 0, -1)
    if first is None or last is None or not shape:
        return None
    first, last = first % len(shape), last % len(shape)
    return (*shape[:first], _product(shape[first : last + 1]), *shape[last + 1 :])


def _narrowed(shape: Shape, given: list[Size]) -> Shape | None:
    dim = given[0]
    if len(given) != 3 or dim is None or not -len(shape) <= dim < len(shape):
        return None
    return tuple(given[2] if at == dim % len(shape) else size for at, size in enumerate(shape))


def _padded(shape: Shape, widths: list[Size]) -> Shape | None:
    """`widths` are those before and behind the last dimension, then of the one before it."""
    if len(widths) % 2 or len(widths) > 2 * len(shape):
        return None
    grown = [*shape]
    for at, (before, behind) in enumerate(zip(widths[::2], widths[1::2], strict=True), 1):
        size = grown[-at]
        grown[-at] = None if size is None or before is None or behind is None else size + before + behind
    return tuple(grown)


def _spatial(shape: Shape, sizes: list[Size]) -> Shape | None:
    """Behind the batch and the channels, which one number is for each dimension of."""
    return _pooled(len(shape) - 2)(shape, sizes)


def _pooled(dims: int) -> _Sizes:
    """The last dimensions, of which one number is for each; in front of them are the channels, and the batch if any."""

    def sizes_of(shape: Shape, sizes: list[Size]) -> Shape | None:
        inner = sizes * dims if len(sizes) == 1 else sizes
        fits = dims > 0 and len(inner) == dims and len(shape) in (dims + 1, dims + 2)
        return (*shape[:-dims], *inner) if fits else None

    return sizes_of


def _scaled(shape: Shape, factors: Values) -> Shape | None:
    """The sizes times one factor, or one for each dimension behind the channels, rounded down."""
    held = factors[0] if len(factors) == 1 else None
    items = held.items or [] if isinstance(held, Object) else [factors] * (len(shape) - 2)
    known = [only(values) for values in items]
    if len(known) != len(shape) - 2:
        return None
    return (*shape[:2], *(_times(size, by) for size, by in zip(shape[2:], known, strict=True)))


def _times(size: Size, factor: object) -> Size:
    """A size times a factor, rounded down; None where either is not known, or no size comes of it."""
    if size is None or not isinstance(factor, (int, float)) or not math.isfinite(factor):
        return None
    return int(size * factor)


def _product(sizes: Sequence[Size]) -> Size:
    known = [size for size in sizes if size is not None]
    return math.prod(known) if len(known) == len(sizes) else None


def _numbers(arguments: Arguments) -> list[Size] | None:
    """The numbers that are given one by one, or as a sequence; None for others."""
    held = arguments[0][0] if len(arguments) == 1 and len(arguments[0]) == 1 else None
    if isinstance(held, Object):
        arguments = held.items if held.items is not None and not held.rest else [UNKNOWN]
    found = [one for one in map(only, arguments) if isinstance(one, int)]
    return [*found] if len(found) == len(arguments) else None


#: of operations that are given each size by itself, or all in one sequence: what computes with them, and their name
_LISTED: dict[str, tuple[_Sizes, str]] = {
    "view": (_viewed, "size"),
    "reshape": (_viewed, "shape"),
    "expand": (_expanded, "size"),
    "repeat": (_repeated, "repeats"),
    "tile": (_repeated, "dims"),
    "permute": (_permuted, "dims"),
    "narrow": (_narrowed, "length"),
    "flatten": (_flattened, "start_dim"),
}
#: of those whose second operand alone says it
_GIVEN: dict[str, tuple[_Sizes, str]] = {
    "pad": (_padded, "pad"),
    "interpolate": (_spatial, "size"),
    **{f"adaptive_{kind}_pool{n}d": (_pooled(n), "output_size") for kind in ("avg", "max") for n in (1, 2, 3)},
}
_KNOWN = {**_LISTED, **_GIVEN}


def result(name: str, operands: Arguments, keywords: Keywords) -> Values | None:
    """The tensor that an operation gives; None where its sizes are not known."""
    first = tensor(operands[0]) if operands else None
    if first is None or first.shape is None or name not in _KNOWN:
        return None
    compute, keyword = _KNOWN[name]
    named = [keywords[keyword]] if keyword in keywords else []
    given = (operands[1:] if name in _LISTED else operands[1:2]) or named
    if name == "interpolate" and (not given or given[0] == NONE):
        shape = _scaled(first.shape, operands[2] if len(operands) > 2 else keywords.get("scale_factor", UNKNOWN))
    else:
        numbers = _numbers(given)
        shape = compute(first.shape, numbers) if numbers or (numbers == [] and name == "flatten") else None
    return (Tensor(shape, first.dtype, first.gradient, None),) if shape is not None else None
