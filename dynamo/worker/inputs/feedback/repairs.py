"""What an error message of torch or Python says about the tensor that was wanted instead (wording of torch 2.6 to
2.13).
"""

from __future__ import annotations

import linecache
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from ..reading.shapes import LENGTH, Combination, Tensor, changed, each_changed
from . import frames, indices, joined, sides


def after(error: BaseException, combination: Combination) -> Iterator[Combination]:
    """Combinations that do what an error asks for, best first."""
    yield from _checked(error, combination)
    yield from _repaired(error, combination, _REPAIRS)


def guesses(error: BaseException, combination: Combination) -> Iterator[Combination]:
    """Combinations that may get around an error that does not say what it wants."""
    yield from _repaired(error, combination, _GUESSES)
    if isinstance(error.__cause__ or error, (AssertionError, ValueError)):  # images, probabilities
        yield from each_changed(combination, lambda t: Tensor("unit", t.shape) if t.kind == "float" else None)


def _checked(error: BaseException, combination: Combination) -> Iterator[Combination]:
    """Sizes that a check of the user's own compared with others, or wanted a multiple of."""
    for refused, shape, names in frames.shapes(error):
        own = {n: v for n, v in combination.items() if n.lstrip("*") in names}
        for some in (own, combination):
            for made in each_changed(some, lambda t, a=refused, b=shape: t.like(b) if t.shape == a else None):  # type: ignore[misc]
                yield {**combination, **made}
    wanted = [*frames.sizes(error), *((size, size + part - size % part) for size, part in frames.remainders(error))]
    for had, size in dict.fromkeys(pair for pair in wanted if pair[1] > 0):
        yield from _resized(combination, had, size)
        yield from each_changed(combination, lambda t, had=had, size=size: _scaled(t, had, size))  # type: ignore[misc]


def _scaled(t: Tensor, had: int, size: int) -> Tensor | None:
    """A tensor whose sides become `had` on the way, behind layers that take steps, so that they become `size`."""
    if had < 1 or had in t.shape or size <= had:
        return None
    sides = (side * size // had if number > 1 and side % had == 0 else side for number, side in enumerate(t.shape))
    made = t.like(tuple(sides))
    return None if made is None or made.shape == t.shape else made


def _resized(combination: Combination, had: int, size: int) -> Iterator[Combination]:
    """Tensors with another size in place of one: every such size, then the last and the first of several."""

    def at(axes: slice) -> Callable[[Tensor], Tensor | None]:
        def change(t: Tensor) -> Tensor | None:
            found = [axis for axis, side in enumerate(t.shape) if side == had][axes]
            made = tuple(size if axis in found else side for axis, side in enumerate(t.shape))
            return t.like(made) if found else None

        return change

    yield from each_changed(combination, at(slice(None)))
    if any(isinstance(v, Tensor) and v.shape.count(had) > 1 for v in combination.values()):
        yield from each_changed(combination, at(slice(-1, None)))
        yield from each_changed(combination, at(slice(1)))


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
        if not (path := trace.tb_frame.f_code.co_filename).startswith(frames.TORCH):
            lines.append(linecache.getline(path, trace.tb_lineno))
        trace = trace.tb_next
    return any(re.search(rf"\b{name}\b(?!\s*=)", line) for line in lines[-3:])


def _product(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """mat1 and mat2 shapes cannot be multiplied (10x8 and 16x4)"""
    had, wanted = int(found.group(2)), int(found.group(3))
    return each_changed(
        combination, lambda t: t.like((*t.shape[:-1], wanted)) if t.shape and t.shape[-1] == had else None
    )


def _length(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expects the input features to be of length 128, but found 32"""
    wanted, had = int(found.group(1)), int(found.group(2))
    return each_changed(
        combination, lambda t: t.like((*t.shape[:-1], wanted)) if t.shape and t.shape[-1] == had else None
    )


def _channels(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected input[2, 8, 16, 16] to have 3 channels"""
    wanted = int(found.group(1))
    return each_changed(combination, lambda t: t.like((t.shape[0], wanted, *t.shape[2:])) if len(t.shape) > 1 else None)


def _instead(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Expected key_padded_mask.shape[1] to be 5, but got 8"""
    return _resized(combination, int(found.group(2)), int(found.group(1)))


def _subscript(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """subscript h has size 32 for operand 1 which does not broadcast with previously seen size 16"""
    one, other = int(found.group(1)), int(found.group(2))
    yield from _resized(combination, one, other)
    yield from _resized(combination, other, one)


def _split(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """split_with_sizes expects split_sizes to sum exactly to 9 (...), but got split_sizes=[9, 9]"""
    had, wanted = int(found.group(1)), sum(int(n) for n in found.group(2).split(","))
    return each_changed(
        combination, lambda t: t.like((*t.shape[:-1], wanted)) if t.shape and t.shape[-1] == had else None
    )


def _state(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Expected hidden size (2, 50, 50), got [2, 5, 50]"""
    wanted, had = (tuple(int(n) for n in found.group(g).split(",")) for g in (1, 2))
    return each_changed(combination, lambda t: t.like(wanted) if t.shape == had else None)


def _normalized(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Given normalized_shape=[16], expected input with shape [*, 16]"""
    wanted = tuple(int(n) for n in found.group(1).split(","))
    return each_changed(combination, lambda t: t.like((*(t.shape[: -len(wanted)] or (2,)), *wanted)))


def _broadcast(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """The size of tensor a (8) must match the size of tensor b (16) at non-singleton dimension 1"""
    first, second = int(found.group(1)), int(found.group(2))
    for had, wanted in ((first, second), (second, first)):
        yield from each_changed(
            combination,
            lambda t, had=had, wanted=wanted: (  # type: ignore[misc]
                t.like(tuple(wanted if size == had else size for size in t.shape)) if had in t.shape else None
            ),
        )


def _masks(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """The size of tensor a (2) must match the size of tensor b (8): of a mask that scores are broadcast with"""
    for shaped in ((0, 1, -1), (0, 1, 1, -1), (-1, -1)):

        def mask(t: Tensor, shaped: tuple[int, ...] = shaped) -> Tensor | None:
            if t.kind != "bool" or len(t.shape) < 2:
                return None
            return t.like(tuple(1 if axis == 1 else t.shape[axis] for axis in shaped))

        yield from each_changed(combination, mask)


def _rank(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """not enough values to unpack (expected 3, got 2); Expected 3D input; and their kind"""
    rank = int(found.group(1))
    return each_changed(combination, lambda t: t.of_rank(rank))


def _higher(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """not enough values to unpack (expected 3, got 2): of what was made from a tensor that lacks as many dimensions"""
    lacking = int(found.group(1)) - int(found.group(2))
    return each_changed(combination, lambda t: t.of_rank(len(t.shape) + lacking))


def _lower_or_higher(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """input.dim() = 3 is not equal to len(dims) = 4: of what was made from a tensor with as many dimensions less"""
    lacking = int(found.group(2)) - int(found.group(1))
    return each_changed(combination, lambda t: t.of_rank(len(t.shape) + lacking))


def _less_rank(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor"""
    return each_changed(combination, lambda t: t.of_rank(len(t.shape) - 1))


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

        yield from each_changed(combination, sides)


def _unbound(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """too many values to unpack (expected 4): of a tensor, along its last dimension or its first"""
    size = int(found.group(1))
    yield from each_changed(combination, lambda t: t.like((*t.shape[:-1], size)) if t.shape else None)
    yield from each_changed(combination, lambda t: t.like((size, *t.shape[1:])) if t.shape else None)


def _more_rank(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Dimension out of range (expected to be in range of [-2, 1], but got 2)"""
    return each_changed(combination, lambda t: t.of_rank(len(t.shape) + 1))


def _all_of_size(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected input[2, 8, 34] to have 7 channels, but got 8: of features that were moved in front of time"""
    return _resized(combination, int(found.group(2)), int(found.group(1)))


def _flat_rows(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """running_mean should contain 5 elements not 600: what is normalized has a dimension less"""
    return each_changed(combination, lambda t: t.of_rank(len(t.shape) - 1) if len(t.shape) > 2 else None)


def _scalar(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """a Tensor with 32 elements cannot be converted to Scalar; the last argument is most often the one"""
    for name, value in reversed(list(combination.items())):
        if isinstance(value, Tensor) and value.shape:
            yield {**combination, name: value.like(())}


def _alike_lengths(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """`lengths` array must be sorted in decreasing order when `enforce_sorted` is True"""
    return each_changed(
        combination, lambda t: Tensor("int", t.shape, t.high, t.high - 1) if t.kind == "int" and t.low == 1 else None
    )


def _one_example(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Cannot handle batch sizes > 1 if no padding token is defined"""
    return each_changed(combination, lambda t: t.like((1, *t.shape[1:])) if t.shape and t.shape[0] != 1 else None)


def _one_number(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """All examples must have the same number of <eos> tokens: 1 and 2 are what most tokenizers call it"""
    for number in (1, 2):
        yield from each_changed(
            combination,
            lambda t, number=number: Tensor("int", t.shape, number + 1, number) if t.kind == "int" else None,  # type: ignore[misc]
        )


def _floats(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected scalar type Float but found Long"""
    return each_changed(combination, lambda t: Tensor("float", t.shape) if t.kind != "float" else None)


def _flattened(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """mat1 and mat2 shapes cannot be multiplied (2x8192 and 80000x500): of a flattened image, whose sides tell it"""
    had, wanted = int(found.group(2)), int(found.group(3))
    for off in (0, 1, -1, 2, -2, 3, 4):

        def sides(t: Tensor, off: int = off) -> Tensor | None:
            if len(t.shape) not in (3, 4, 5) or had in (0, wanted):
                return None
            scale = (wanted / had) ** (1 / (len(t.shape) - 2))
            return t.like((*t.shape[:2], *(max(round(side * scale) + off, 1) for side in t.shape[2:])))

        yield from each_changed(combination, sides)


def _even(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """shape '[2, 2, 16]' is invalid for input of size 80: of an odd length that was halved"""
    return each_changed(
        combination,
        lambda t: (
            t.like(tuple(8 if size == LENGTH and axis else size for axis, size in enumerate(t.shape)))
            if LENGTH in t.shape[1:]
            else None
        ),
    )


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
            yield from each_changed(combination, lambda t, sizes=sizes: t.like(sizes))  # type: ignore[misc]


_REPAIRS: tuple[tuple[str, Callable[[Combination, re.Match[str]], Iterator[Combination]]], ...] = (
    (r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _product),
    (r"cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)", joined.features),
    (r"input_size\. Expected (\d+), got (\d+)", joined.expected),
    (r"to have (\d+) channels", _channels),
    (r"input\[\d+, \d+, \d+\] to have (\d+) channels, but got (\d+)", _all_of_size),
    (r"to have (\d+) channels, but got (\d+)", joined.spread),
    (r"to have (\d+) channels, but got (\d+)", joined.channels),
    (r"repeat dims can not be smaller", _less_rank),
    (r"same number of dimensions: got (\d+) and (\d+)", _alike),
    (r"same number of dimensions: got (?:3 and 2|2 and 3)", indices.one_each),
    (r"(?:size|height|width).*(?:match|expected).*?\((\d+)(?:\s*[*x,]\s*(\d+))?\)\.?$", sides.told),
    (r"of (?:length|size) (\d+),? but (?:found|got) (\d+)", _length),
    (r"has size (\d+) for operand \d+ which does not broadcast with previously seen size (\d+)", _subscript),
    (r"sum exactly to (\d+) .*split_sizes=\[([\d, ]+)\]", _split),
    (r"Expected hidden(?:\[\d\])? size \(([\d, ]+)\), got \[([\d, ]+)\]", _state),
    (r"normalized_shape=\[([\d, ]+)\]", _normalized),
    (r"too many values to unpack \(expected (\d+)", _unbound),
    (r"spatial dimensions of \[([\d, ]+)\] and output size of (?:torch\.Size\()?\[([\d, ]+)\]", sides.ranked),
    (r"maximum size for tensor at dimension \d+ is (\d+) but size is (\d+)", sides.windowed),
    (r"Wrong shape: expected (\d+) dims", _rank),
    (r"[Oo]utput size is too small|greater than actual input size|Padding size should be less", sides.wider),
    (r"Expected more than 1 (?:spatial element|value per channel) when training", sides.wider),
    (r"expand\(\S+?\{\[([\d, ]+)\]\}, size=\[([-\d, ]+)\]\): the number of sizes", sides.expanded),
    (r"values to unpack \(expected (\d+), got (\d+)\)", _higher),
    (r"input\.dim\(\) = (\d+) is not equal to len\(dims\) = (\d+)", _lower_or_higher),
    (r"values to unpack \(expected (\d+)", _rank),
    (r"to be (\d+),? but got (\d+)", _instead),
    (r"[Ee]xpected (?:input to be )?(?:\d-?D or )?(\d)-?D", _rank),
    (r"'indices' to have one of|must be (?:long|int)|int64 for index|tensors used as indices must be", indices.wanted),
    (r"except in dimension (\d+)\. Expected size (\d+) but got size (\d+)", _beside),
    (r"out of bounds for dimension 0 with size", indices.ascending),
    (
        r"index out of range|Class values must be smaller|out of bounds(?: for dimension \d+ with size (\d+))?",
        indices.smaller,
    ),
    (r"index (\d+) is out of range", indices.fewer),
    (r"0D or 1D target tensor expected", indices.one_class),
    (r"Expected target size \[([\d, ]+)\], got \[([\d, ]+)\]", indices.of_target),
    (r"running_mean should contain \d+ elements", _flat_rows),
    (r"single element can be converted to an index|combination of arguments - got \([^)]*\bTensor\b", indices.whole),
    (r"scalar type (?:Float|Half)|must have the same dtype|not implemented for '(?:Long|Bool|Int)'", _floats),
)

_GUESSES: tuple[tuple[str, Callable[[Combination, re.Match[str]], Iterator[Combination]]], ...] = (
    (r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _flattened),
    (r"sorted in decreasing order", _alike_lengths),
    (r"index out of range in self", indices.rounded),
    (r"input_size: got (\d+) expected (\d+)", joined.lacking),
    (r"shape '\[([-\d, ]+)\]' is invalid for input of size (\d+)", indices.one_a_row),
    (r"shape '\[([\d, ]+)\]' is invalid for input of size", _even),
    (r"shape '\[([\d, ]+)\]' is invalid for input of size", _viewed),
    (r"batch sizes? ?(?:>|larger|greater|other than 1)", _one_example),
    (r"must match except in dimension \d+\. Expected size (?:\d+ but got size 1|1 but got size \d+)\b", _one_example),
    (r"<eos>|index -1 is out of bounds for dimension \d+ with size 0", _one_number),
    (r"must match the size of tensor b|attn_mask|shape of the mask", _masks),
    (r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", _broadcast),
    (r"Dimension out of range|too many indices for tensor|Index tensor must have the same number", _more_rank),
    (r"cannot be converted to Scalar|Boolean value of Tensor with more than one|only one element tensors", _scalar),
)
