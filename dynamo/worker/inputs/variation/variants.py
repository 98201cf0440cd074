"""Further inputs, made from those that are known to fit, to reach the other side of branches that depend on data.

A variant is named by plain data, so that another process can make the very same one: ("draw", seed), ("scale",
factor), ...
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ..examples import Arguments
from .tensor_changes import change, is_integer, is_mask

Variant = tuple[str, float]

GIVEN: Variant = ("given", 0)
TRIED: tuple[Variant, ...] = (
    ("draw", 1),
    ("eval", 0),
    ("half", 0),
    ("negate", 0),
    ("scale", 100),
    ("zeros", 0),
    ("masks", 0),
    ("masks", 1),
    ("some masked", 0),
    ("draw", 2),
    ("scale", 1e-3),
    ("ones", 0),
    ("scale", 1e5),
    ("nan", 0),
    ("weights", 64),
    ("weights", 4096),
)

TINY = 1e-13
"""Below the small numbers that programs add, compare with and clamp to; its square is none of float32's zeros."""

TELLING: tuple[Variant, ...] = (
    ("integers", 0),
    ("integers less", 1),
    ("reversed", 0),
    ("masks", 1),
    ("masks", 0),
    ("inverted", 0),
    ("special", 0),
    ("zeros", 0),
)
"""Made for a comparison in any case: what a rewrite takes for granted of values need not show in the way taken."""

SEARCHING: tuple[Variant, ...] = (
    *TELLING,
    ("flags", 0),
    ("flags", 1),
    ("flags", 2),
    ("numbers", 0.5),
    ("longer", 0),
    ("longer", -1),
    ("alone", 0),
    ("one sign", 1),
    ("one sign", -1),
    ("ties", 0),
    ("both signs", 1),
    ("both signs", TINY),
    ("one sign", TINY),
    ("parts", 0),
)
"""Made where no rule proved the rewrite: what it takes for granted may be anything."""


def label(variant: Variant) -> str:
    kind, amount = variant
    return {
        "given": "the inputs as given",
        "draw": f"another random draw (seed {amount:.0f})",
        "negate": "negated inputs",
        "scale": f"inputs times {amount:g}",
        "zeros": "all zeros",
        "ones": "all ones",
        "masks": f"masks all {amount:.0f}",
        "some masked": "masks partly 0",
        "nan": "inputs with a NaN",
        "alone": "a batch of one",
        "parts": "one part more, of lengths that add up to a size",
        "weights": f"weights times {amount:g}",
        "eval": "the module in eval mode",
        "half": "module and inputs in float16",
        "integers": f"integers all {amount:.0f}",
        "integers less": f"integers less {amount:.0f}",
        "reversed": "integers in reverse order",
        "inverted": "masks inverted",
        "special": "inputs with NaN, infinities and zero",
        "one sign": {1.0: "positive inputs", -1.0: "negative inputs"}.get(amount, "tiny positive inputs"),
        "flags": "flags inverted" + (f", and another random draw (seed {amount:.0f})" if amount else ""),
        "numbers": f"Python's floats times {amount:g}",
        "longer": f"one more along the {'first' if amount == 0 else 'last'} dimension",
        "both signs": {1.0: "inputs of both signs"}.get(amount, "tiny inputs of both signs"),
        "ties": "few values, in rows that occur twice",
    }[kind]


def seed(number: int) -> None:
    """Every generator that inputs and models are likely to draw from."""
    torch.manual_seed(number)
    random.seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number)


def arguments(make: Callable[[], Arguments], variant: Variant) -> Arguments:
    """The arguments of a variant; the generators are seeded first, so equal calls give equal values."""
    seed(int(variant[1]) if variant[0] in ("draw", "flags") else 0)
    made = tree_map_only(torch.Tensor, change(*variant), make())
    if variant[0] == "integers less":  # numbers of Python too; none of them is an index out of bounds by that
        made = tree_map_only(int, lambda n: n - 1 if type(n) is int and n > 0 else n, made)
    elif variant[0] == "integers":
        made = tree_map_only(int, lambda n: 0 if type(n) is int and n > 0 else n, made)
    elif variant[0] == "flags":
        made = tree_map_only(bool, lambda flag: not flag, made)
    elif variant[0] == "numbers":
        made = tree_map_only(float, lambda number: number * variant[1], made)
    elif variant[0] == "longer":
        made = _longer(made, int(variant[1]))
    elif variant[0] == "alone":
        made = part_of_batch(made, sys.maxsize)
    elif variant[0] == "parts":
        made = _more_parts(made)
    return made  # type: ignore[no-any-return]


def _longer(given: Arguments, dim: int) -> Arguments:
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


def _are_parts(tensor: torch.Tensor, given: Arguments) -> bool:
    """Whether integers are lengths: they add up to a size of another tensor, and one of them can be cut in two."""
    if not is_integer(tensor) or tensor.dim() != 1 or tensor.numel() < 2 or int(tensor.min()) < 0 or is_mask(tensor):
        return False
    sizes: set[int] = set()
    tree_map_only(torch.Tensor, lambda other: sizes.update(other.shape if other is not tensor else ()), given)
    return int(tensor.sum()) in sizes


def _more_parts(given: Arguments) -> Arguments:
    """Lengths of parts with the largest one cut in two."""

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        if not _are_parts(tensor, given):
            return tensor
        place = int(tensor.argmax())
        two = torch.stack([torch.ones_like(tensor[place]), tensor[place] - 1])
        return torch.cat([tensor[:place], two, tensor[place + 1 :]])

    return tree_map_only(torch.Tensor, cut, given)  # type: ignore[no-any-return]


def others_of(given: Arguments) -> Arguments:
    """The same objects with other numbers: all floating-point tensors halved, which keeps their signs."""

    def half(tensor: torch.Tensor) -> torch.Tensor:
        changes = tensor.is_floating_point() or tensor.is_complex()
        return (tensor.detach() * 0.5).requires_grad_(tensor.requires_grad) if changes else tensor

    return tree_map_only(torch.Tensor, half, given)  # type: ignore[no-any-return]


def part_of_batch(given: Arguments, parts: int) -> Arguments:
    """The first of `parts` parts of every tensor that has the batch's size, the most frequent first dimension."""
    sizes: list[int] = []
    tree_map_only(torch.Tensor, lambda t: sizes.append(t.shape[0]) if t.dim() else None, given)
    batch = max(sizes, key=sizes.count, default=0)

    def cut(tensor: torch.Tensor) -> torch.Tensor:
        return tensor[: max(batch // parts, 1)] if tensor.dim() and tensor.shape[0] == batch else tensor

    return tree_map_only(torch.Tensor, cut, given)  # type: ignore[no-any-return]


def worth_trying(given: Arguments, instance: Any) -> Iterator[Variant]:
    """The variants that change anything in these arguments or in the module that is called."""
    module = instance if isinstance(instance, torch.nn.Module) else None
    weights = [] if module is None else list(module.parameters())
    tensors: list[torch.Tensor] = []
    tree_map_only(torch.Tensor, tensors.append, given)
    floats = any(t.is_floating_point() or t.is_complex() for t in tensors)
    masks = any(is_mask(t) for t in tensors)
    wanted = {
        "draw": bool(tensors),
        "weights": bool(weights),
        "masks": masks,
        "some masked": masks,
        "eval": module is not None and module.training,
        "half": any(w.dtype == torch.float32 for w in weights),
    }
    for variant in TRIED:
        if wanted.get(variant[0], floats):
            yield variant


def telling(given: Arguments, device: str, made: list[Variant], unproven: bool = False) -> list[Variant]:
    """The variants that a comparison makes besides those that were made: each once, if it changes anything."""
    tensors: list[torch.Tensor] = []
    tree_map_only(torch.Tensor, tensors.append, given)
    numbers: list[int] = []
    tree_map_only(int, lambda n: numbers.append(n) if type(n) is int else None, given)
    others: list[type] = []
    tree_map_only((bool, float), lambda n: others.append(type(n)), given)
    integers = any(is_integer(t) for t in tensors)
    masks = any(is_mask(t) for t in tensors)
    floats = any(t.is_floating_point() or t.is_complex() for t in tensors)
    wanted = {
        "flags": bool in others,
        "numbers": float in others,
        "longer": bool(tensors),
        "alone": bool(tensors),
        "parts": any(_are_parts(t, given) for t in tensors),
        "integers": integers or bool(numbers),
        "integers less": integers or bool(numbers),
        "reversed": integers,
        "masks": masks,
        "inverted": masks,
        "special": floats,
        "zeros": floats,
        "one sign": floats,
        "ties": floats,
        "both signs": floats,
    }
    # On CUDA an index out of bounds ends the process; the smallest index that was given is in bounds, 0 need not be.
    careful = device.startswith("cuda") and any(is_integer(t) and t.numel() and int(t.min()) < 0 for t in tensors)
    every = SEARCHING if unproven else TELLING
    return [v for v in every if wanted[v[0]] and v not in made and not (careful and v[0].startswith("integers"))]


@contextmanager
def applied(instance: Any, variant: Variant) -> Iterator[None]:
    """What a variant does to the module itself (its mode, its weights, their type), and undoes."""
    if isinstance(instance, torch.nn.Module) and variant[0] == "eval":
        with _evaluated(instance):
            yield
    elif isinstance(instance, torch.nn.Module) and variant[0] in ("weights", "half"):
        with _changed(instance, variant):
            yield
    else:
        yield


@contextmanager
def _evaluated(instance: torch.nn.Module) -> Iterator[None]:
    modes = [(module, module.training) for module in instance.modules()]
    instance.eval()
    try:
        yield
    finally:
        for module, mode in modes:
            module.training = mode


@contextmanager
def _changed(instance: torch.nn.Module, variant: Variant) -> Iterator[None]:
    """Other values of the floating-point parameters, or another type of those and of the buffers."""
    tensors: list[torch.Tensor] = [t for t in instance.parameters() if t.is_floating_point()]
    if variant[0] == "half":
        tensors += [t for t in instance.buffers() if t.is_floating_point()]
    kept = [(t, t.data, t.grad) for t in tensors]
    for tensor, data, _ in kept:
        tensor.grad = None  # one of another type than its parameter's is refused by Dynamo (torch 2.13.0)
        tensor.data = data.half() if variant[0] == "half" else data * variant[1]
    try:
        yield
    finally:
        for tensor, data, gradient in kept:
            tensor.grad = None
            tensor.data = data
            tensor.grad = gradient
