"""Further inputs, made from those that are known to fit, to reach the other side of branches that depend on data.

A variant is named by plain data, so that another process can make the very same one: ("draw", seed), ("scale",
factor), ...
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ..examples import Arguments
from . import structure
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
    ("integers more", 1),
    ("integers negated", 0),
    ("rolled", 1),
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
    ("special", -1),
    ("outlier", 1e3),
    ("draw", 3),
    ("draw", 4),
    ("parts", 0),
    ("exchanged", 0),
    ("batched", 0),
    ("double", 0),
    ("whole", 4),
    ("empty", 0),
    ("anomalies", 0),
    ("no gradients", 0),
)
"""Made where no rule proved the rewrite: what it takes for granted may be anything."""

OTHER = frozenset({"batched", "whole"})
"""Inputs of another rank or type than all that were given: what differs on these alone need not concern anybody."""


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
        "empty": "an empty batch",
        "batched": "one dimension more in front",
        "anomalies": "while anomalies are detected",
        "no gradients": "without gradients",
        "exchanged": "tensors of one kind in the other order",
        "double": "module and inputs in float64",
        "whole": "integers in the place of floating-point numbers",
        "parts": "one part more, of lengths that add up to a size",
        "weights": f"weights times {amount:g}",
        "eval": "the module in eval mode",
        "half": "module and inputs in float16",
        "integers": f"integers all {amount:.0f}",
        "integers less": f"integers less {amount:.0f}",
        "integers more": f"integers plus {amount:.0f}",
        "integers negated": "negated integers",
        "reversed": "integers in reverse order",
        "rolled": "integers in another order",
        "inverted": "masks inverted",
        "special": f"{'negative ' if amount else ''}inputs with NaN, infinities and zero",
        "one sign": {1.0: "positive inputs", -1.0: "negative inputs"}.get(amount, "tiny positive inputs"),
        "flags": "flags inverted" + (f", and another random draw (seed {amount:.0f})" if amount else ""),
        "numbers": f"Python's floats times {amount:g}",
        "longer": f"one more along the {'first' if amount == 0 else 'last'} dimension",
        "both signs": {1.0: "inputs of both signs"}.get(amount, "tiny inputs of both signs"),
        "ties": "few values, in rows that occur twice",
        "equal": f"all of them {amount:g}",
        "outlier": f"one row times {amount:g}",
    }[kind]


def _is_for_cpu() -> bool:
    """Is torch built for no other device, and none added by another package?"""
    built = any(getattr(torch._C, f"_has_{device}", True) for device in ("cuda", "mps", "xpu"))
    return not built and not hasattr(torch, torch._C._get_privateuse1_backend_name())


def seed(number: int) -> None:
    """Every generator that inputs and models are likely to draw from."""
    if (
        _is_for_cpu()
    ):  # `torch.manual_seed` writes down the stack for each other device that is not there, a millisecond
        torch.default_generator.manual_seed(number)
    else:
        torch.manual_seed(number)
    random.seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number)


def arguments(make: Callable[[], Arguments], variant: Variant) -> Arguments:
    """The arguments of a variant; the generators are seeded first, so equal calls give equal values."""
    seed(int(variant[1]) if variant[0] in ("draw", "flags") else 0)
    made = tree_map_only(torch.Tensor, change(*variant), make())
    kind, amount = variant
    if kind in _OF_INTEGERS:
        made = tree_map_only(int, lambda n: _OF_INTEGERS[kind](n) if type(n) is int and n > 0 else n, made)
    elif kind == "flags":
        made = tree_map_only(bool, lambda flag: not flag, made)
    elif kind == "numbers":
        made = tree_map_only(float, lambda number: number * amount, made)
    elif kind == "longer":
        made = structure.longer(made, int(amount))
    elif kind in _OF_STRUCTURE:
        made = _OF_STRUCTURE[kind](made)
    return made  # type: ignore[no-any-return]


_OF_INTEGERS: dict[str, Callable[[int], int]] = {
    "integers": lambda n: 0,
    "integers less": lambda n: n - 1,
    "integers more": lambda n: n + 1,
    "integers negated": lambda n: -n,
}
"""What a variant does to numbers of Python, as it does to tensors of integers."""
_OF_STRUCTURE: dict[str, Callable[[Arguments], Arguments]] = {
    "alone": lambda given: structure.part_of_batch(given, sys.maxsize),
    "empty": structure.empty_batch,
    "parts": structure.more_parts,
    "batched": structure.batched,
    "exchanged": structure.exchanged,
}


def others_of(given: Arguments) -> Arguments:
    """The same objects with other numbers: all floating-point tensors halved, which keeps their signs."""

    def half(tensor: torch.Tensor) -> torch.Tensor:
        changes = tensor.is_floating_point() or tensor.is_complex()
        return (tensor.detach() * 0.5).requires_grad_(tensor.requires_grad) if changes else tensor

    return tree_map_only(torch.Tensor, half, given)  # type: ignore[no-any-return]


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
        "anomalies": True,
        "no gradients": True,
        "flags": bool in others,
        "numbers": float in others,
        "longer": bool(tensors),
        "alone": bool(tensors),
        "empty": bool(tensors),
        "batched": bool(tensors),
        "exchanged": len(tensors) > 1,
        "double": floats,
        "whole": floats,
        "parts": any(structure.are_parts(t, given) for t in tensors),
        "integers": integers or bool(numbers),
        "integers less": integers or bool(numbers),
        "integers more": integers or bool(numbers),
        "integers negated": integers or bool(numbers),
        "reversed": integers,
        "rolled": integers,
        "masks": masks,
        "inverted": masks,
        "special": floats,
        "zeros": floats,
        "one sign": floats,
        "ties": floats,
        "outlier": floats,
        "draw": True,
        "both signs": floats,
    }
    every = SEARCHING if unproven else TELLING
    out = _may_be_out_of_bounds(tensors) if device.startswith("cuda") else ()
    return [v for v in every if wanted[v[0]] and v not in made and v[0] not in out]


def _may_be_out_of_bounds(tensors: list[torch.Tensor]) -> frozenset[str]:
    """On CUDA an index out of bounds ends the process.

    The smallest index that was given is in bounds, 0 and what lies below the smallest need not be.
    """
    below = any(is_integer(t) and t.numel() and int(t.min()) < 0 for t in tensors)
    beyond = {"integers more", "integers negated"}
    return frozenset({*beyond, "integers", "integers less"} if below else beyond)


_TYPES = {"half": torch.float16, "double": torch.float64}


@contextmanager
def applied(instance: Any, variant: Variant) -> Iterator[None]:
    """What a variant does to the module itself (its mode, its weights, their type) or to torch's modes, and undoes.

    torch does not look at the indices of sparse tensors by itself, and other indices than those that were given may
    lie beyond the sizes: memory that belongs to nobody would be written.
    """
    module = instance if isinstance(instance, torch.nn.Module) else None
    with ExitStack() as stack:
        if variant != GIVEN:
            stack.enter_context(torch.sparse.check_sparse_tensor_invariants())  # type: ignore[no-untyped-call]
        if variant[0] == "eval" and module is not None:
            stack.enter_context(_evaluated(module))
        elif variant[0] in ("weights", *_TYPES) and module is not None:
            stack.enter_context(_changed(module, variant))
        elif variant[0] == "anomalies":
            stack.enter_context(torch.autograd.set_detect_anomaly(True))
        elif variant[0] == "no gradients":
            stack.enter_context(torch.no_grad())
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
    dtype = _TYPES.get(variant[0])
    if dtype is not None:
        tensors += [t for t in instance.buffers() if t.is_floating_point()]
    kept = [(t, t.data, t.grad) for t in tensors]
    for tensor, data, _ in kept:
        tensor.grad = None  # one of another type than its parameter's is refused by Dynamo (torch 2.13.0)
        tensor.data = data.to(dtype) if dtype is not None else data * variant[1]
    try:
        yield
    finally:
        for tensor, data, gradient in kept:
            tensor.grad = None
            tensor.data = data
            tensor.grad = gradient
