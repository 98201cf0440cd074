"""What an error message of torch or Python says about the tensor that was wanted instead (wording of torch 2.6 to
2.13).
"""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from .reading.shapes import Tensor, changed, one_changed

Combination = dict[str, Any]


def after(error: BaseException, combination: Combination) -> Iterator[Combination]:
    """Combinations that do what an error asks for, best first."""
    return _repaired(error, combination, _REPAIRS)


def guesses(error: BaseException, combination: Combination) -> Iterator[Combination]:
    """Combinations that may get around an error that does not say what it wants."""
    yield from _repaired(error, combination, _GUESSES)
    if isinstance(error.__cause__ or error, (AssertionError, ValueError)):  # images, probabilities
        yield from _each(combination, lambda t: Tensor("unit", t.shape) if t.kind == "float" else None)


def _repaired(error: BaseException, combination: Combination, table: Any) -> Iterator[Combination]:
    text = str(error.__cause__ or error)
    for pattern, repair in table:
        found = re.search(pattern, text)
        if found is not None:
            yield from repair(combination, found)


def speaks_of(error: BaseException, name: str) -> bool:
    """Whether an error names a parameter, or came from a line that does something with it as if it were there."""
    text = str(error.__cause__ or error)
    if re.search(rf"\b{name}\b", text):
        return True
    if "NoneType" not in text:
        return False
    trace = error.__traceback__
    lines = []
    while trace is not None:
        lines.append(linecache.getline(trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    return any(re.search(rf"\b{name}\b(?!\s*=)", line) for line in lines[-3:])


def _each(combination: Combination, change: Callable[[Tensor], Any]) -> Iterator[Combination]:
    """The combination with all tensors changed, then those of one argument, then one of those in a container."""
    found = {name: changed(value, change) for name, value in combination.items()}
    found = {name: value for name, value in found.items() if value is not None}
    if found:
        yield {**combination, **found}
    if len(found) > 1:
        for name, value in found.items():
            yield {**combination, name: value}
    for name in found:
        if not isinstance(combination[name], Tensor):
            yield from ({**combination, name: value} for value in one_changed(combination[name], change))


def _sides(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Input image size (32*32) doesn't match model (224*224)"""
    height, width = int(found.group(1)), int(found.group(2) or found.group(1))
    return _each(combination, lambda t: t.like((*t.shape[:-2], height, width)) if len(t.shape) >= 4 else None)


def _product(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """mat1 and mat2 shapes cannot be multiplied (10x8 and 16x4)"""
    had, wanted = int(found.group(2)), int(found.group(3))
    return _each(combination, lambda t: t.like((*t.shape[:-1], wanted)) if t.shape and t.shape[-1] == had else None)


def _length(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expects the input features to be of length 128, but found 32"""
    wanted, had = int(found.group(1)), int(found.group(2))
    return _each(combination, lambda t: t.like((*t.shape[:-1], wanted)) if t.shape and t.shape[-1] == had else None)


def _channels(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected input[2, 8, 16, 16] to have 3 channels"""
    wanted = int(found.group(1))
    return _each(combination, lambda t: t.like((t.shape[0], wanted, *t.shape[2:])) if len(t.shape) > 1 else None)


def _split(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """split_with_sizes expects split_sizes to sum exactly to 9 (...), but got split_sizes=[9, 9]"""
    had, wanted = int(found.group(1)), sum(int(n) for n in found.group(2).split(","))
    return _each(combination, lambda t: t.like((*t.shape[:-1], wanted)) if t.shape and t.shape[-1] == had else None)


def _state(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Expected hidden size (2, 50, 50), got [2, 5, 50]"""
    wanted, had = (tuple(int(n) for n in found.group(g).split(",")) for g in (1, 2))
    return _each(combination, lambda t: t.like(wanted) if t.shape == had else None)


def _joined(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """mat1 and mat2 shapes cannot be multiplied (2x4 and 3x50): of features that something was joined to"""
    more = int(found.group(3)) - int(found.group(2))

    def longer(t: Tensor, rows: int) -> Tensor | None:
        if t.kind != "float" or not rows or more % rows or t.shape[-1] + more // rows <= 0:
            return None
        return t.like((*t.shape[:-1], t.shape[-1] + more // rows))

    yield from _each(combination, lambda t: longer(t, 1) if len(t.shape) > 1 else None)
    yield from _each(combination, lambda t: longer(t, t.shape[1]) if len(t.shape) == 3 else None)


def _normalized(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Given normalized_shape=[16], expected input with shape [*, 16]"""
    wanted = tuple(int(n) for n in found.group(1).split(","))
    return _each(combination, lambda t: t.like((*(t.shape[: -len(wanted)] or (2,)), *wanted)))


def _broadcast(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """The size of tensor a (8) must match the size of tensor b (16) at non-singleton dimension 1"""
    first, second = int(found.group(1)), int(found.group(2))
    for had, wanted in ((first, second), (second, first)):
        yield from _each(
            combination,
            lambda t, had=had, wanted=wanted: (  # type: ignore[misc]
                t.like(tuple(wanted if size == had else size for size in t.shape)) if had in t.shape else None
            ),
        )


def _rank(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """not enough values to unpack (expected 3, got 2); Expected 3D input; and their kind"""
    rank = int(found.group(1))
    return _each(combination, lambda t: t.of_rank(rank))


def _less_rank(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"""
    return _each(combination, lambda t: t.of_rank(len(t.shape) - 1))


def _alike(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Tensors must have same number of dimensions: got 4 and 5"""
    more = int(found.group(2)) - int(found.group(1))
    for by in (-more, more):

        def ranked(t: Tensor, by: int = by) -> Tensor | None:
            rank = len(t.shape) + by
            return t.like(t.shape[:rank]) if t.kind == "int" and 0 < rank < len(t.shape) else t.of_rank(rank)

        for name, value in combination.items():  # all of them would differ as before
            made = changed(value, ranked)
            yield from ({**combination, name: made},) if made is not None else ()


def _beside(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Sizes of tensors must match except in dimension 1. Expected size 16 but got size 1: all but that dimension"""
    axis, first, second = (int(found.group(g)) for g in (1, 2, 3))
    for had, wanted in ((first, second), (second, first)):

        def sides(t: Tensor, had: int = had, wanted: int = wanted) -> Tensor | None:
            made = tuple(wanted if s == had and n != axis else s for n, s in enumerate(t.shape))
            return None if made == t.shape else t.like(made)

        yield from _each(combination, sides)


def _unbound(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """too many values to unpack (expected 4): of a tensor, along its last dimension or its first"""
    size = int(found.group(1))
    yield from _each(combination, lambda t: t.like((*t.shape[:-1], size)) if t.shape else None)
    yield from _each(combination, lambda t: t.like((size, *t.shape[1:])) if t.shape else None)


def _whole(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """only integer tensors of a single element can be converted to an index: a number, most often the last one"""
    for name, value in reversed(list(combination.items())):
        if isinstance(value, Tensor):
            yield {**combination, name: 2}


def _one_a_row(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """shape '[2, 1, 16, 16]' is invalid for input of size 2560: of indices that are one in each row"""
    wanted, had = math.prod(abs(int(n)) for n in found.group(1).split(",")), int(found.group(2))
    times = had // wanted if wanted and had % wanted == 0 else 0
    return _each(
        combination,
        lambda t: (
            t.like(tuple(s for n, s in enumerate(t.shape) if n != t.shape.index(times)))
            if t.kind == "int" and len(t.shape) > 1 and times in t.shape
            else None
        ),
    )


def _joined_channels(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected input[2, 24, 1, 1] to have 20 channels, but got 24: something was joined to fewer"""
    wanted, had = int(found.group(1)), int(found.group(2))

    def channels(t: Tensor) -> Tensor | None:
        if len(t.shape) < 3 or t.shape[1] >= had or t.shape[1] + wanted <= had:
            return None
        return t.like((t.shape[0], t.shape[1] + wanted - had, *t.shape[2:]))

    return _each(combination, channels)


def _more_rank(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Dimension out of range (expected to be in range of [-2, 1], but got 2)"""
    return _each(combination, lambda t: t.of_rank(len(t.shape) + 1))


def _indices(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int"""
    return _each(combination, lambda t: t.as_int(8) if t.kind == "float" else None)


def _smaller(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """index out of range in self"""
    return _each(combination, lambda t: Tensor("int", t.shape, 2) if t.kind == "int" and t.high > 2 else None)


def _scalar(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """a Tensor with 32 elements cannot be converted to Scalar; the last argument is most often the one"""
    for name, value in reversed(list(combination.items())):
        if isinstance(value, Tensor) and value.shape:
            yield {**combination, name: value.like(())}


def _one_example(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Cannot handle batch sizes > 1 if no padding token is defined"""
    return _each(combination, lambda t: t.like((1, *t.shape[1:])) if t.shape and t.shape[0] != 1 else None)


def _one_number(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """All examples must have the same number of <eos> tokens: 1 and 2 are what most tokenizers call it"""
    for number in (1, 2):
        yield from _each(
            combination,
            lambda t, number=number: Tensor("int", t.shape, number + 1, number) if t.kind == "int" else None,  # type: ignore[misc]
        )


def _floats(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected scalar type Float but found Long"""
    return _each(combination, lambda t: Tensor("float", t.shape) if t.kind != "float" else None)


def _spread(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected input[2, 64, 32, 32] to have 32 channels, but got 64: of several tensors that were joined"""
    wanted, had = int(found.group(1)), int(found.group(2))
    return _each(
        combination,
        lambda t: (
            t.like((t.shape[0], t.shape[1] * wanted // had, *t.shape[2:]))
            if len(t.shape) > 1 and t.shape[1] * wanted % had == 0 and t.shape[1] * wanted // had != t.shape[1]
            else None
        ),
    )


def _flattened(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """mat1 and mat2 shapes cannot be multiplied (2x8192 and 80000x500): of a flattened image, whose sides tell it"""
    had, wanted = int(found.group(2)), int(found.group(3))
    for off in (0, 1, -1, 2, -2, 3, 4):

        def sides(t: Tensor, off: int = off) -> Tensor | None:
            if len(t.shape) not in (3, 4, 5) or had == wanted:
                return None
            scale = (wanted / had) ** (1 / (len(t.shape) - 2))
            return t.like((*t.shape[:2], *(max(round(side * scale) + off, 1) for side in t.shape[2:])))

        yield from _each(combination, sides)


def _viewed(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """shape '[2, 3, 45, 8, 8]' is invalid for input of size 80: what it is a view of has fewer dimensions"""
    shape = tuple(int(n) for n in found.group(1).split(","))
    if min(shape) < 1:
        return
    for rank in range(len(shape) - 1, 1, -1):
        folded = len(shape) - rank + 1
        for first in (1, len(shape) - folded):
            size = math.prod(shape[first : first + folded])
            sizes = (*shape[:first], size, *shape[first + folded :])
            yield from _each(combination, lambda t, sizes=sizes: t.like(sizes))  # type: ignore[misc]


_REPAIRS: tuple[tuple[str, Callable[[Combination, re.Match[str]], Iterator[Combination]]], ...] = (
    (r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _product),
    (r"to have (\d+) channels", _channels),
    (r"to have (\d+) channels, but got (\d+)", _spread),
    (r"to have (\d+) channels, but got (\d+)", _joined_channels),
    (r"repeat dims can not be smaller", _less_rank),
    (r"same number of dimensions: got (\d+) and (\d+)", _alike),
    (r"(?:size|height|width).*(?:match|expected).*?\((\d+)(?:\s*[*x,]\s*(\d+))?\)\.?$", _sides),
    (r"of (?:length|size) (\d+),? but (?:found|got) (\d+)", _length),
    (r"sum exactly to (\d+) .*split_sizes=\[([\d, ]+)\]", _split),
    (r"Expected hidden(?:\[\d\])? size \(([\d, ]+)\), got \[([\d, ]+)\]", _state),
    (r"normalized_shape=\[([\d, ]+)\]", _normalized),
    (r"too many values to unpack \(expected (\d+)", _unbound),
    (r"values to unpack \(expected (\d+)", _rank),
    (r"[Ee]xpected (?:input to be )?(?:\d-?D or )?(\d)-?D", _rank),
    (r"'indices' to have one of|must be (?:long|int)|tensors used as indices must be", _indices),
    (r"except in dimension (\d+)\. Expected size (\d+) but got size (\d+)", _beside),
    (r"index out of range|out of bounds", _smaller),
    (r"single element can be converted to an index", _whole),
    (r"scalar type (?:Float|Half)|must have the same dtype|not implemented for '(?:Long|Bool|Int)'", _floats),
)

_GUESSES: tuple[tuple[str, Callable[[Combination, re.Match[str]], Iterator[Combination]]], ...] = (
    (r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _flattened),
    (r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _joined),
    (r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", _one_a_row),
    (r"shape '\[([\d, ]+)\]' is invalid for input of size", _viewed),
    (r"batch sizes? ?(?:>|larger|greater|other than 1)", _one_example),
    (r"must match except in dimension \d+\. Expected size (?:\d+ but got size 1|1 but got size \d+)\b", _one_example),
    (r"<eos>|index -1 is out of bounds for dimension \d+ with size 0", _one_number),
    (r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", _broadcast),
    (r"Dimension out of range|too many indices for tensor|Index tensor must have the same number", _more_rank),
    (r"cannot be converted to Scalar|Boolean value of Tensor with more than one|only one element tensors", _scalar),
)
