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

from .examples import Arguments

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
    ("one sign", 1),
    ("one sign", -1),
    ("ties", 0),
    ("both signs", 1),
    ("both signs", TINY),
    ("one sign", TINY),
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


def is_mask(tensor: torch.Tensor) -> bool:
    """Booleans, and integers that are only 0 and 1 (attention masks; token ids go higher)."""
    if tensor.dtype == torch.bool:
        return True
    if tensor.is_floating_point() or tensor.is_complex() or tensor.numel() == 0:
        return False
    return bool(((tensor == 0) | (tensor == 1)).all())


def _with_nan(tensor: torch.Tensor) -> torch.Tensor:
    changed = tensor.clone()
    if changed.numel():
        changed.view(-1)[0] = float("nan")
    return changed


def _some_masked(tensor: torch.Tensor) -> torch.Tensor:
    changed = torch.ones_like(tensor)
    if changed.numel() > 1:
        changed.view(-1)[-1] = 0
    return changed


def _special(tensor: torch.Tensor) -> torch.Tensor:
    """NaN, infinities and zero, as far as there are elements left beside them."""
    changed = tensor.detach().clone(memory_format=torch.contiguous_format)
    flat = changed.view(-1)
    for number, value in enumerate((float("inf"), float("nan"), -float("inf"), 0.0)):
        if 2 * number < flat.numel():
            flat[-1 - 2 * number] = value
    return changed


def _drawn(tensor: torch.Tensor, low: int, high: int) -> torch.Tensor:
    """Integers from `low` to `high`, the same for tensors of one shape, on the CPU."""
    return torch.randint(low, high + 1, tensor.shape, device="cpu", generator=torch.Generator().manual_seed(0))


def _signs(tensor: torch.Tensor) -> torch.Tensor:
    return (2 * _drawn(tensor, 0, 1) - 1).to(tensor.device)


def _ties(tensor: torch.Tensor) -> torch.Tensor:
    """Small integers, and each row a second time, turned round: what rows are ordered by is the same for both."""
    drawn = _drawn(tensor, -2, 2)
    half = tensor.shape[0] // 2 if tensor.dim() else 0
    if half:
        drawn[-half:] = drawn[:half].flip(0, -1) if tensor.dim() > 1 else drawn[:half].flip(0)
    if tensor.dim() and tensor.shape[0] > 2 * half > 0:
        drawn[half] = drawn[0]
    return drawn.to(tensor)


def is_integer(tensor: torch.Tensor) -> bool:
    return tensor.dtype != torch.bool and not tensor.is_floating_point() and not tensor.is_complex()


def _less(tensor: torch.Tensor) -> torch.Tensor:
    """One less, but not less than what is there where that would be below zero: indices stay valid."""
    if tensor.numel() == 0:
        return tensor
    least = tensor.min()
    return tensor - 1 if int(least) > 0 else (tensor - 1).clamp(min=int(least))


def _change(variant: Variant) -> Callable[[torch.Tensor], torch.Tensor]:
    kind, amount = variant
    on_floats: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "negate": lambda t: -t,
        "scale": lambda t: t * amount,
        "zeros": torch.zeros_like,
        "ones": torch.ones_like,
        "nan": _with_nan,
        "half": lambda t: t.half() if t.is_floating_point() else t,
        "special": _special,
        "one sign": lambda t: (t.abs() * amount).to(t.dtype),
        "both signs": lambda t: (t.abs() * amount * _signs(t)).to(t.dtype),
        "ties": _ties,
    }
    on_masks: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "masks": lambda t: torch.full_like(t, amount),
        "some masked": _some_masked,
        "inverted": lambda t: (t == 0).to(t.dtype),
    }
    on_integers: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "integers": torch.zeros_like,
        "integers less": _less,
        "reversed": lambda t: t.flip(-1) if t.dim() else t,
    }

    def change(tensor: torch.Tensor) -> torch.Tensor:
        if kind in on_floats and (tensor.is_floating_point() or tensor.is_complex()):
            return on_floats[kind](tensor.detach()).requires_grad_(tensor.requires_grad)
        if kind in on_masks and is_mask(tensor):
            return on_masks[kind](tensor)
        if kind in on_integers and is_integer(tensor):
            return on_integers[kind](tensor)
        return tensor

    return change


def arguments(make: Callable[[], Arguments], variant: Variant) -> Arguments:
    """The arguments of a variant; the generators are seeded first, so equal calls give equal values."""
    seed(int(variant[1]) if variant[0] in ("draw", "flags") else 0)
    made = tree_map_only(torch.Tensor, _change(variant), make())
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
