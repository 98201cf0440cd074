"""Calls that wait for the output that they are a part of. Dynamo traces them; keep them plain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Later(NamedTuple):
    """A call whose result is a part of some output only. Exists while Dynamo traces, and behind a graph break."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __str__(self) -> str:
        return str(now(self))

    def __format__(self, spec: str) -> str:
        return format(now(self), spec)


def now(value: Any) -> Any:
    """`value` with every `Later` in it called; the same object where there is none."""
    if type(value) is Later:
        return value.function(*now(value.args), **now(value.kwargs))
    if type(value) is tuple or type(value) is list:
        items = [now(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else type(value)(items)
    if type(value) is dict:
        entries = {key: now(item) for key, item in value.items()}
        return value if all(entries[key] is value[key] for key in value) else entries
    return value
