"""What came of one call, in a form that can be kept and compared: values, gradients, exception, printed text."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from .examples import Arguments

Outcome = dict[str, Any]

TEXT_KEPT = 1 << 20

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def of_call(call: Callable[..., Any], arguments: Arguments, instance: Any) -> Outcome:
    """Calls, then goes backwards through whatever of the result has a gradient."""
    leaves = _leaves(instance, arguments)
    for _, leaf in leaves:
        leaf.grad = None
    outcome: Outcome = {"values": [], "structure": "", "gradients": {}, "raised": None}
    with captured() as text:
        try:
            value = call(*arguments[0], **arguments[1])
            flat, structure = tree_flatten(value)
            outcome["structure"] = re.sub(r"\s+", " ", str(structure))
            outcome["values"] = [_kept(item) for item in flat]
            outcome["gradients"] = _gradients(flat, leaves)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            outcome["raised"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    outcome["text"] = _ADDRESS.sub("0x...", "".join(text))
    for _, leaf in leaves:
        leaf.grad = None
    return outcome


def _kept(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return item.detach().to("cpu", copy=True)
    return _ADDRESS.sub("0x...", repr(item))


def _leaves(instance: Any, arguments: Arguments) -> list[tuple[str, torch.Tensor]]:
    """Parameters; and where there are none, the floating-point arguments, which then want gradients."""
    if isinstance(instance, torch.nn.Module):
        found: list[tuple[str, torch.Tensor]] = [(n, p) for n, p in instance.named_parameters() if p.requires_grad]
        if found:
            return found
    tensors = [t for t in tree_flatten(arguments)[0] if isinstance(t, torch.Tensor)]
    tensors = [t for t in tensors if t.is_floating_point() and t.is_leaf]
    return [(f"argument {number}", t.requires_grad_()) for number, t in enumerate(tensors)]


def _gradients(flat: list[Any], leaves: list[tuple[str, torch.Tensor]]) -> dict[str, Any]:
    """Gradients of a weighted sum: a plain sum has none through a softmax."""
    outputs = [t for t in flat if isinstance(t, torch.Tensor) and t.requires_grad and t.is_floating_point()]
    if not outputs or not leaves:
        return {}
    total = sum((o.float() * torch.arange(o.numel(), device=o.device).cos().reshape(o.shape)).sum() for o in outputs)
    found = torch.autograd.grad(total, [leaf for _, leaf in leaves], allow_unused=True)  # type: ignore[arg-type]
    return {name: None if g is None else _kept(g.to_dense()) for (name, _), g in zip(leaves, found)}  # noqa: B905


@contextlib.contextmanager
def captured() -> Iterator[list[str]]:
    """What is written to the descriptors 1 and 2 meanwhile: prints, logging, and what C code writes.

    Filled at the end.
    """
    text: list[str] = []
    with tempfile.TemporaryFile() as file:
        _flush()
        kept = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                yield text
        finally:
            _flush()
            for number, descriptor in zip((1, 2), kept):  # noqa: B905
                os.dup2(descriptor, number)
                os.close(descriptor)
            file.seek(0)
            text.append(file.read(TEXT_KEPT).decode("utf-8", "replace"))


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def forget_cached(wanted: Callable[[str], bool]) -> None:
    """Empties `lru_cache`s of modules that are not torch's or Python's: a `warning_once` then speaks again."""
    cached_type = type(functools.lru_cache(lambda: None))
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ("torch", "functools", "re", "sympy", "_graphmend_worker"):
            continue
        path = getattr(module, "__file__", None)
        if not path or not wanted(path):
            continue
        for value in list(vars(module).values()):
            if isinstance(value, cached_type):
                value.cache_clear()
