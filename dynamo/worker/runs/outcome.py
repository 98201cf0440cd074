"""What came of one call, in a form that can be kept and compared: values, gradients, exception, printed text."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from ..inputs.examples import Arguments

Outcome = dict[str, Any]

TEXT_KEPT = 1 << 20
DEEPEST = 8

_PASSING: tuple[tuple[str, str], ...] = (
    (r"0x[0-9a-f]{6,}", "0x..."),
    (r"(\.py:|\.py\", line |\.py\(|\bline )\d+", r"\1..."),
    (r"\b\d{4}-\d\d-\d\d[ T]|\b\d\d:\d\d:\d\d([.,]\d+)?", "..."),
)
"""What a text says of the moment and not of the program: addresses, line numbers (a mend moves lines), times of day."""


def of_call(call: Callable[..., Any], arguments: Arguments, instance: Any) -> Outcome:
    """Calls, then goes backwards through whatever of the result has a gradient."""
    wanting = _wanting(instance, arguments)
    for _, leaf in wanting:
        leaf.grad = None
    outcome: Outcome = {"values": [], "structure": "", "gradients": {}, "raised": None}
    with captured() as text:
        try:
            value = call(*arguments[0], **arguments[1])
            flat, outcome["structure"] = leaves(value)
            outcome["values"] = [_kept(item) for item in flat]
            outcome["gradients"] = _gradients(flat, wanting)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            outcome["raised"] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    outcome["text"] = lasting("".join(text))
    for _, leaf in wanting:
        leaf.grad = None
    return outcome


def lasting(text: str) -> str:
    """A text without what another run of the same program would say in another way."""
    for pattern, put in _PASSING:
        text = re.sub(pattern, put, text)
    return text


def leaves(value: Any, seen: tuple[int, ...] = ()) -> tuple[list[Any], str]:
    """The tensors and plain values of a result, and its structure as text: containers that torch knows, dataclasses,
    mappings, and other objects (a key-value cache) by their attributes.
    """
    flat, structure = tree_flatten(value)
    found: list[Any] = []
    names = [re.sub(r"\s+", " ", str(structure))]
    for item in flat:
        parts = None if id(item) in seen or len(seen) == DEEPEST else _parts(item)
        if parts is None:
            found.append(item)
            continue
        inner, name = leaves(parts, (*seen, id(item)))
        found += inner
        names.append(f"{type(item).__qualname__}({name})")
    return found, lasting(" ".join(names))


def _parts(item: Any) -> dict[str, Any] | None:
    """What an object is made of; None for one to be taken as it is."""
    if item is None or isinstance(item, (torch.Tensor, torch.nn.Module, type, str, bytes, int, float, complex)):
        return None
    if isinstance(item, Mapping):
        return {repr(key): value for key, value in item.items()}
    if dataclasses.is_dataclass(item):
        return {field.name: getattr(item, field.name, None) for field in dataclasses.fields(item)}
    parts = getattr(item, "__dict__", None)
    return dict(parts) if parts and not callable(item) else None


def _kept(item: Any) -> Any:
    if isinstance(item, torch.Tensor):
        return item.detach().to("cpu", copy=True)
    return lasting(repr(item))


def _wanting(instance: Any, arguments: Arguments) -> list[tuple[str, torch.Tensor]]:
    """Parameters; and where there are none, the floating-point arguments, which then want gradients."""
    if isinstance(instance, torch.nn.Module):
        found: list[tuple[str, torch.Tensor]] = [(n, p) for n, p in instance.named_parameters() if p.requires_grad]
        if found:
            return found
    tensors = [t for t in tree_flatten(arguments)[0] if isinstance(t, torch.Tensor)]
    tensors = [t for t in tensors if t.is_floating_point() and t.is_leaf]
    return [(f"argument {number}", t.requires_grad_()) for number, t in enumerate(tensors)]


def _gradients(flat: list[Any], wanting: list[tuple[str, torch.Tensor]]) -> dict[str, Any]:
    """Gradients of a weighted sum: a plain sum has none through a softmax."""
    outputs = [t for t in flat if isinstance(t, torch.Tensor) and t.requires_grad and t.is_floating_point()]
    if not outputs or not wanting:
        return {}
    total = sum((o.float() * torch.arange(o.numel(), device=o.device).cos().reshape(o.shape)).sum() for o in outputs)
    found = torch.autograd.grad(total, [leaf for _, leaf in wanting], allow_unused=True)  # type: ignore[arg-type]
    return {name: None if g is None else _kept(g.to_dense()) for (name, _), g in zip(wanting, found)}  # noqa: B905


@contextlib.contextmanager
def captured() -> Iterator[list[str]]:
    """What is written to the descriptors 1 and 2 meanwhile: prints, logging, and what C code writes.

    Filled at the end.
    """
    text: list[str] = []
    with tempfile.TemporaryFile() as file:
        _flush()
        formatted = warnings.formatwarning
        kept = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.formatwarning = _short
                yield text
        finally:
            warnings.formatwarning = formatted
            _flush()
            for number, descriptor in zip((1, 2), kept):  # noqa: B905
                os.dup2(descriptor, number)
                os.close(descriptor)
            file.seek(0)
            text.append(file.read(TEXT_KEPT).decode("utf-8", "replace"))


def _short(message: Any, category: Any, *_: Any, **__: Any) -> str:
    """A warning without the line that it came from."""
    return f"{category.__name__}: {message}\n"


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
