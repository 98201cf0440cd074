"""What an object is made of, one step at a time: the one description that both looking and restoring follow."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
import types
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import torch

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), range, slice)
LONGEST = 256
"""Elements of a container that are looked at one by one; longer ones of plain values are told by a digest."""

_PASSING: tuple[tuple[str, str], ...] = (
    (r"0x[0-9a-f]{6,}", "0x..."),
    (r"(\.py:|\.py\", line |\.py\(|\bline )\d+", r"\1..."),
    (r"\b\d{4}-\d\d-\d\d[ T]|\b\d\d:\d\d:\d\d([.,]\d+)?", "..."),
)
"""What a text says of the moment and not of the program: addresses, line numbers (a mend moves lines), times of day."""

_CLOSED = (
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.CodeType,
    types.GeneratorType,
    types.MappingProxyType,
    type,
    torch.dtype,
    torch.device,
    torch.Size,
    torch.layout,
)
"""Never looked into: they are told by their text."""
_INNER = re.compile(
    r"(torch\.(_|fx\b|jit\b|cuda\b|autograd\b|futures\b)|_graphmend_worker\b|logging\b|threading\b|re\b)"
)
"""Modules whose objects are machinery."""
_NAMELESS: Any = object.__repr__
"""Says nothing of an object but its class."""
_HOOKS = re.compile(r"_hooks(_\w+)?$")
_OWN = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "training", "_compiled_call_impl"}


@functools.lru_cache(maxsize=1024)
def is_own(name: str) -> bool:
    """Is an attribute of a module one of torch's tables: of parts, of hooks?"""
    return name in _OWN or _HOOKS.search(name) is not None


def lasting(text: str) -> str:
    """A text without what another run of the same program would say in another way."""
    for pattern, put in _PASSING:
        text = re.sub(pattern, put, text)
    return text


def text_of(value: Any) -> str:
    """A value told as a text that another process would write too."""
    if isinstance(value, (types.FunctionType, types.MethodType, type)):
        return f"{value.__module__}.{value.__qualname__}"
    try:
        text = lasting(repr(value))
    except Exception:
        return f"a {type(value).__qualname__}"
    return text if len(text) <= 400 else f"{text[:100]}... ({digest(text.encode('utf-8', 'replace'))})"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def state_text(value: Any) -> str | None:
    """The state of a random generator, or the elements of an array; None for everything else."""
    kind = type(value)
    try:
        if isinstance(value, torch.Generator):
            return f"a generator in state {digest(value.get_state().cpu().numpy().tobytes())}"
        if kind.__module__ == "random":
            return f"a generator in state {digest(repr(value.getstate()).encode())}"
        if kind.__module__.startswith("numpy.random"):
            inner = getattr(value, "bit_generator", value)
            state = value.get_state() if kind.__name__ == "RandomState" else inner.state
            return f"a generator in state {digest(repr(state).encode())}"
        if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
            return f"{value.dtype} {list(value.shape)} ({digest(value.tobytes())})"
    except Exception:
        return None
    return None


def is_plain(value: Any) -> bool:
    """Whether a value is told by its text; such values have no identity that matters."""
    return isinstance(value, (*PLAIN, *_CLOSED))


def only_plain(value: Any) -> bool:
    items = list(value.values()) + list(value) if isinstance(value, Mapping) else list(value)
    return all(isinstance(item, PLAIN) for item in items)


def unwrapped(value: Any) -> Any:
    """The module behind what `torch.compile` made of one."""
    return getattr(value, "_orig_mod", value) if isinstance(value, torch.nn.Module) else value


def is_open(value: Any) -> bool:
    """Whether an object is looked into."""
    if is_plain(value) or isinstance(value, torch.Tensor):
        return False
    if isinstance(value, (list, tuple, set, frozenset, deque, Mapping, torch.nn.Module)):
        return True
    return _INNER.match(type(value).__module__) is None and attributes(value) is not None


def attributes(value: Any) -> dict[str, Any] | None:
    """The attributes of an object, those in slots included; None for one without any that says itself what it is."""
    own = getattr(value, "__dict__", None)
    found = dict(own) if isinstance(own, dict) else {}
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if isinstance(name, str) and not name.startswith("__") and hasattr(value, name):
                found.setdefault(name, getattr(value, name))
    may_get_some = isinstance(own, dict) and type(value).__repr__ is _NAMELESS
    return found or ({} if may_get_some or dataclasses.is_dataclass(value) else None)


def parts(value: Any) -> Iterator[tuple[str, Any]]:
    """(how it is written behind the object's name, part) of everything that an open object holds."""
    if isinstance(value, torch.nn.Module):
        yield from _of_module(value)
    elif isinstance(value, Mapping):
        for number, (key, item) in enumerate(list(value.items())):
            if number < LONGEST:
                yield f"[{text_of(key) if isinstance(key, PLAIN) else f'key {number}'}]", item
    elif isinstance(value, (set, frozenset)):
        for number, item in enumerate(sorted(value, key=text_of)[:LONGEST]):
            yield f"[element {number}]", item
    elif isinstance(value, (list, tuple, deque)):
        names = getattr(type(value), "_fields", ())
        for number, item in enumerate(list(value)[:LONGEST]):
            yield (f".{names[number]}" if number < len(names) else f"[{number}]"), item
        if type(value) not in (list, tuple, deque):
            yield from _attributes(value)
    else:
        yield from _attributes(value)


def _attributes(value: Any) -> Iterator[tuple[str, Any]]:
    for name, item in sorted((attributes(value) or {}).items()):
        yield f".{name}", item


def _of_module(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    for group in (module._parameters, module._buffers, module._modules):
        for name, item in list(group.items()):
            yield f".{name}", item
    for name, item in sorted(module.__dict__.items()):
        if not is_own(name):
            yield f".{name}", item


def registered(module: torch.nn.Module) -> dict[str, str]:
    """As what each part of a module is known to it: parameter, buffer, part of the checkpoint or not."""
    found = dict.fromkeys(module._parameters, "a parameter")
    for name in module._buffers:
        kept = name not in module._non_persistent_buffers_set
        found[name] = "a buffer" if kept else "a buffer outside of the checkpoint"
    return {**found, **dict.fromkeys(module._modules, "a part")}


def hooks(module: torch.nn.Module) -> dict[str, int]:
    """How many hooks of each kind a module has."""
    items = module.__dict__.items()
    return {name: len(value) for name, value in items if _HOOKS.search(name) and isinstance(value, dict) and value}
