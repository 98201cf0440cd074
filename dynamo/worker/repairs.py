"""What an error message of torch or Python says about the tensor that was wanted instead (wording of torch 2.6 to
2.13).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from .shapes import Tensor, resized

Combination = dict[str, Any]


def after(error: BaseException, combination: Combination) -> Iterator[Combination]:
    """Combinations that may fit better, best first."""
    text = str(error.__cause__ or error)
    for pattern, repair in _REPAIRS:
        found = re.search(pattern, text)
        if found is not None:
            yield from repair(combination, found)


def _each(combination: Combination, change: Callable[[Tensor], Any]) -> Iterator[Combination]:
    """The combination with all tensors changed, then with one of them at a time."""
    changed = {n: change(v) if isinstance(v, Tensor) else None for n, v in combination.items()}
    changed = {n: v for n, v in changed.items() if v is not None}
    if changed:
        yield {**combination, **changed}
    if len(changed) > 1:
        for name, value in changed.items():
            yield {**combination, name: value}


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
    return _each(combination, lambda t: resized(t, rank))


def _more_rank(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """Dimension out of range (expected to be in range of [-2, 1], but got 2)"""
    return _each(combination, lambda t: resized(t, len(t.shape) + 1))


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


def _floats(combination: Combination, found: re.Match[str]) -> Iterator[Combination]:
    """expected scalar type Float but found Long"""
    return _each(combination, lambda t: Tensor("float", t.shape) if t.kind != "float" else None)


_REPAIRS: tuple[tuple[str, Callable[[Combination, re.Match[str]], Iterator[Combination]]], ...] = (
    (r"cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)", _product),
    (r"to have (\d+) channels", _channels),
    (r"of (?:length|size) (\d+),? but (?:found|got) (\d+)", _length),
    (r"normalized_shape=\[([\d, ]+)\]", _normalized),
    (r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\)", _broadcast),
    (r"values to unpack \(expected (\d+)", _rank),
    (r"[Ee]xpected (?:input to be )?(?:\d-?D or )?(\d)-?D", _rank),
    (r"Dimension out of range|too many indices for tensor", _more_rank),
    (r"'indices' to have one of|must be (?:long|int)|tensors used as indices must be", _indices),
    (r"index out of range|out of bounds", _smaller),
    (r"cannot be converted to Scalar|Boolean value of Tensor with more than one|only one element tensors", _scalar),
    (r"scalar type (?:Float|Half)|must have the same dtype|not implemented for '(?:Long|Bool|Int)'", _floats),
)
