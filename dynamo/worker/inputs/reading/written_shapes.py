"""Shapes that a docstring or comment states of a parameter: `x: (B, T, C)`, `:param mask: ... of dimension (batch, 1)`,
`# points: [B, 3, N]`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from .shapes import BATCH, LENGTH, MOST_DIMENSIONS

LARGEST_SIDE = 4096
_STATED = re.compile(r"[(\[]([^()\[\]]*)[)\]]")
_SIZE = re.compile(r"\w+(?: ?[*+\-/'] ?\w*)?")
_BATCH = re.compile(r"b|bs|bsz|n?_?batch(_?size)?|num_batch\w*", re.IGNORECASE)
_SIDE = re.compile(r"h|w|height|width|img_\w+|image_\w+", re.IGNORECASE)
_CHANNELS = re.compile(r"c|ch|channels?|in_(channels|chans)|num_channels", re.IGNORECASE)

_OF_TYPES = re.compile(r"tensor|optional|default|bool|float\b|\bint\b|\bstr\b", re.IGNORECASE)


def stated(function: Any, names: list[str]) -> dict[str, tuple[str, ...]]:
    """The names and numbers of each parameter's dimensions, of those that the text of a function states."""
    found: dict[str, tuple[str, ...]] = {}
    for line in _lines(function):
        for name in names:
            if name not in found and (dims := _of_line(line, name)) is not None:
                found[name] = dims
    return found


def sizes(shapes: dict[str, tuple[str, ...]], instance: Any) -> dict[str, tuple[tuple[int, ...], bool]]:
    """A size for each dimension, and whether the object has one of them: numbers as they are, what the object or its
    settings call so as they have it; two names, two sizes.
    """
    known: dict[str, int] = {}
    for dims in shapes.values():
        for position, name in enumerate(dims):
            if name not in known:
                known[name] = _size(name, position, len(dims), instance, len(known))
    return {
        parameter: (tuple(known[name] for name in dims), any(_own(instance, name) for name in dims[1:]))
        for parameter, dims in shapes.items()
    }


def _size(name: str, position: int, rank: int, instance: Any, number: int) -> int:
    if name.isdigit():
        return int(name)
    own = _own(instance, name)
    if own is not None and position:
        return own
    if _BATCH.fullmatch(name) or (position == 0 and rank > 1):
        return BATCH
    if _CHANNELS.fullmatch(name) and rank > 3:
        return 3
    return 32 if _SIDE.fullmatch(name) and rank > 2 else LENGTH + number


def _own(instance: Any, name: str) -> int | None:
    """What the object calls so, or the settings that it keeps."""
    found = [getattr(instance, name, None)]
    for key, kept in getattr(instance, "__dict__", {}).items():
        own = kept if isinstance(kept, dict) else getattr(kept, "__dict__", None)
        found += [own.get(name)] if isinstance(own, dict) and not key.startswith("_") else []
    return next((size for size in found if type(size) is int and 0 < size <= LARGEST_SIDE), None)


def _lines(function: Any) -> Iterator[str]:
    """The docstring of a function, then that of its class, then the comments in the function."""
    owner = getattr(function, "__self__", None)
    for each in (function, type(owner) if owner is not None else None):
        text = (inspect.getdoc(each) or "") if each is not None else ""
        yield from re.split(r"[\n;]", text)
    try:
        source = inspect.getsource(function)
    except (OSError, TypeError):
        return
    yield from (found[1] for found in re.finditer(r"#(.*)", source))


def _of_line(line: str, name: str) -> tuple[str, ...] | None:
    named = rf"[\s\-*:`]*(?:param\s+(?:[\w.]+\s+)?)?`*{re.escape(name)}\b`*"
    head = re.match(rf"{named}(?=\s*[:=(\[,-]|\s+(?:is|has|of)\b)", line)
    head = head or re.search(rf"[.,:)]\s+`*{re.escape(name)}`*\s*[:=]?\s*(?=[(\[])", line)  # several in one line
    for group in _STATED.findall(line[head.end() :]) if head is not None else ():
        dims = tuple(part.strip() for part in group.rstrip(", ").split(","))
        shaped = len(dims) > 1 or dims[0].isupper() or "batch" in dims[0].lower()
        shaped = shaped and len(dims) <= MOST_DIMENSIONS and all(_SIZE.fullmatch(part) for part in dims)
        if shaped and not _OF_TYPES.search(group):
            return dims
    return None
