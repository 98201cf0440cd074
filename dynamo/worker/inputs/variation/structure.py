"""Other sizes, ranks and places of all tensors of a call: what a rewrite takes for granted of how they lie together."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.utils._pytree import tree_map_only

from ..examples import Arguments
from .tensor_changes import is_integer, is_mask


def longer(given: Arguments, dim: int) -> Arguments:
    """The last part once more, in all tensors whose size along `dim`, 0 or -1, is the most frequent one.

    Along the last dimension those of several dimensions count.
    """
    sizes: list[int] = []

    def counts(tensor: torch.Tensor) -> bool:
        return tensor.dim() > -dim and tensor.shape[dim] > 0

    tree_map_only(torch.Tensor, lambda t: sizes.append(t.shape[dim]) if counts(t) else None, given)
    size = max(sizes, key=sizes.count, default=0)

    def one_more(tensor: torch.Tensor) -> torch.Tensor:
        if not counts(tensor) or tensor.shape[dim] != size:
            return tensor
        last = tensor.detach().narrow(dim, size - 1, 1)
        return torch.cat([tensor.detach(), last], dim).requires_grad_(tensor.requires_grad)

    return tree_map_only(torch.Tensor, one_more, given)  # type: ignore[no-any-return]


def are_parts(tensor: torch.Tensor, given: Arguments) -> bool:
    """Whether integers are lengths: they add up to a size of another tensor, and one of them can be cut in two."""
    if not is_integer(tensor) or tensor.dim() != 1 or tensor.numel() < 2 or int(tensor.min()) < 0 or is_mask(tensor):
        return False
    sizes: set[int] = set()
    tree_map_only(torch.Tensor, lambda other: sizes.update(other.shape if other is not tensor else ()), given)
    return int(tensor.sum()) in sizes


def more_parts(given: Arguments) -> Arguments:
    """Lengths of parts with the largest one cut in two."""

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        if not are_parts(tensor, given):
            return tensor
        place = int(tensor.argmax())
        two = torch.stack([torch.ones_like(tensor[place]), tensor[place] - 1])
        return torch.cat([tensor[:place], two, tensor[place + 1 :]])

    return tree_map_only(torch.Tensor, cut, given)  # type: ignore[no-any-return]


def batched(given: Arguments) -> Arguments:
    """One dimension more in front of every tensor, which holds it twice, the second time turned round."""

    def twice(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.dim():
            return tensor
        kept = tensor.detach()
        return torch.stack([kept, kept.flip(0)]).requires_grad_(tensor.requires_grad)

    return tree_map_only(torch.Tensor, twice, given)  # type: ignore[no-any-return]


def exchanged(given: Arguments) -> Arguments:
    """The positional tensors of one rank and type in the other order: which of two is the longer one, or the larger."""
    values = list(given[0])
    places: dict[tuple[torch.dtype, int], list[int]] = {}
    for number, value in enumerate(values):
        if isinstance(value, torch.Tensor):
            places.setdefault((value.dtype, value.dim()), []).append(number)
    for numbers in places.values():
        for number, other in zip(numbers, reversed(numbers)):  # noqa: B905
            values[number] = given[0][other]
    return (tuple(values), given[1])


def part_of_batch(given: Arguments, parts: int) -> Arguments:
    """The first of `parts` parts of every tensor that has the batch's size, the most frequent first dimension."""
    return _first(given, lambda batch: max(batch // parts, 1))


def empty_batch(given: Arguments) -> Arguments:
    """Nothing of every tensor that has the batch's size."""
    return _first(given, lambda batch: 0)


def _first(given: Arguments, number: Callable[[int], int]) -> Arguments:
    sizes: list[int] = []
    tree_map_only(torch.Tensor, lambda t: sizes.append(t.shape[0]) if t.dim() else None, given)
    batch = max(sizes, key=sizes.count, default=0)

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        return tensor[: number(batch)] if tensor.dim() and tensor.shape[0] == batch else tensor

    return tree_map_only(torch.Tensor, cut, given)  # type: ignore[no-any-return]
