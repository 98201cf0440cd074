"""A stream of batches, made from inputs that are known to fit: what a program meets when it runs for long.

Each batch has other floats, other integers in the same range and order of magnitude (token ids are shuffled), other
paddings, and where asked for another length. Batch 0 is the inputs as given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ..inputs.examples import Arguments
from ..inputs.variation.tensor_changes import is_integer, is_mask
from ..inputs.variation.variants import seed

#: what a batch changes, tried in this order: a program need not take other integers, or other lengths
CHANGES = (
    ("floats", "integers", "masks", "lengths"),
    ("floats", "integers", "masks"),
    ("floats", "masks"),
    ("floats",),
)


def ways(lengths: bool) -> list[tuple[str, ...]]:
    """The sets of changes to try, most first."""
    return [way for way in CHANGES if lengths or "lengths" not in way]


def batch(make: Callable[[], Arguments], number: int, changes: tuple[str, ...]) -> Arguments:
    """One batch of the stream; the same number gives equal values again."""
    seed(0)
    given = make()
    if number == 0:
        return given
    seed(1000 + number)
    changed: Arguments = tree_map_only(torch.Tensor, lambda tensor: _changed(tensor, changes), given)
    return _shortened(changed, number) if "lengths" in changes else changed


def _changed(tensor: torch.Tensor, changes: tuple[str, ...]) -> torch.Tensor:
    if tensor.is_floating_point() and "floats" in changes:
        new = torch.randn_like(tensor) * (tensor.detach().std() if tensor.numel() > 1 else 1.0)
        return new.detach().requires_grad_(tensor.requires_grad)
    if is_mask(tensor):
        return _padded(tensor) if "masks" in changes and tensor.dim() > 1 else tensor
    if is_integer(tensor) and "integers" in changes and tensor.dim() > 1:
        return _shuffled(tensor)
    return tensor


def _padded(mask: torch.Tensor) -> torch.Tensor:
    """Rows that end at different places; the first is whole."""
    new, length = torch.ones_like(mask), mask.shape[-1]
    for row in list(new.reshape(-1, length))[1:] if length > 1 else ():
        row[int(torch.randint(length // 2 + 1, length + 1, ())) :] = 0
    return new


def _shuffled(numbers: torch.Tensor) -> torch.Tensor:
    """The same integers in another order, row by row; those that a row repeats (padding, image tokens) stay."""
    new = numbers.clone(memory_format=torch.contiguous_format)
    for row in new.view(-1, new.shape[-1]):
        often = {value for value, count in Counter(row.tolist()).items() if count > 2}
        free = torch.tensor([i for i, value in enumerate(row.tolist()) if value not in often], dtype=torch.long)
        row[free] = row[free[torch.randperm(len(free))]]
    return new


def _shortened(given: Arguments, number: int) -> Arguments:
    """Less of the dimension that integers and masks have in common behind the first, which is their length."""
    sizes = [size for tensor in _tensors(given) if not tensor.is_floating_point() for size in tensor.shape[1:2]]
    if not sizes:
        return given
    length = max(set(sizes), key=sizes.count)
    wanted = max(1, length - number % max(1, length // 2))

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        for dimension in range(1, tensor.dim()):
            if tensor.shape[dimension] == length:
                tensor = tensor.narrow(dimension, 0, wanted)
        return tensor.contiguous()

    return tree_map_only(torch.Tensor, cut, given)  # type: ignore[no-any-return]


def _tensors(given: Any) -> Iterator[torch.Tensor]:
    found: list[torch.Tensor] = []
    tree_map_only(torch.Tensor, found.append, given)
    return iter(found)
