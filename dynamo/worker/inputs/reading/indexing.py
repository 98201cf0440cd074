"""What an index takes of a value, and of what it is a part of."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import torch

from . import usage
from .shapes import BATCH, LENGTH, Tensor
from .usage import Known, Ref, Value


def of_layers(loop: Any, value: Callable[[Any], Value]) -> dict[str, int]:
    """The name of a loop's index that picks one of several layers, with how many there are."""
    found: dict[str, int] = {}
    name = getattr(loop.target, "id", None)
    for node in (n for statement in loop.body for n in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id == name:
            layers = value(node.value)
            if isinstance(layers, Known) and isinstance(layers.value, (torch.nn.ModuleList, torch.nn.ParameterList)):
                found[node.slice.id] = len(layers.value)
    return found


MOST_KEYS = 8
TABLES = (torch.nn.ModuleDict, torch.nn.ParameterDict, dict)


def keys_of(target: Any, over: Any, parts: list[Any], value: Callable[[Any], Value]) -> list[Value]:
    """What a loop binds over a table whose names are known: `for name, layer in self.layers.items()`, and
    `self.layers[name](x[name]) for name in sorted(x)`. `parts` is what the loop does; empty where it is about no table.
    """
    method = over.func.attr if isinstance(over, ast.Call) and isinstance(over.func, ast.Attribute) else ""
    table = value(over.func.value) if method in ("items", "keys") else value(over) if isinstance(over, _PLACE) else None
    if isinstance(target, ast.Name) and not _is_table(table):
        picks = (n for part in parts for n in ast.walk(part) if isinstance(n, ast.Subscript))
        own = (value(n.value) for n in picks if getattr(n.slice, "id", "") == target.id and isinstance(n.value, _PLACE))
        table = next(filter(_is_table, own), None)
    if not _is_table(table):
        return []
    items = [(key, item) for key, item in table.value.items() if isinstance(key, str)][:MOST_KEYS]  # type: ignore[union-attr]
    return [(Known(key), Known(item)) if method == "items" else Known(key) for key, item in items]


_PLACE = (ast.Name, ast.Attribute)


def _is_table(value: Value) -> bool:
    return isinstance(value, Known) and isinstance(value.value, TABLES) and len(value.value) > 0


def first_layer(value: Any) -> Value:
    """What a loop over layers, or an index, takes first."""
    if isinstance(value, (torch.nn.ModuleList, torch.nn.Sequential, list, tuple)) and len(value):
        return Known(value[0])
    return None


def integer(node: Any) -> int | None:
    """The whole number that an expression is written as."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def of_shape(ref: Ref, index: Any) -> Value:
    """`x.shape[1]`, and what lies between two dimensions or behind one: `x.shape[:2]`, `x.shape[2:]`."""
    number = integer(index)
    if number is not None:
        ref.has_axis(number)
        return usage.SizeOf(ref, number)
    if not isinstance(index, ast.Slice) or index.step is not None:
        return None
    lower, upper = (0 if each is None else integer(each) for each in (index.lower, index.upper))
    if lower is None or upper is None or (index.upper is None and lower >= 0):
        ref.has_least(lower or 0)
        return usage.Rest(ref, lower) if lower is not None and index.upper is None else None
    last = 0 if index.upper is None else upper
    if (lower < 0) is not (last < 0 or index.upper is None) or last <= lower:
        return None
    ref.has_axis(lower if lower < 0 else last - 1)
    return tuple(usage.SizeOf(ref, axis) for axis in range(lower, last))


def picked(base: Ref, index: Any, value: Value, counted: set[str]) -> Value:
    """`x[0]`, and `x[order]`, which has the rows of `x`; `counted` are names that loops bind."""
    number = integer(index)
    if isinstance(value, usage.Ref) and value.use is not base.use and not value.back:
        value.use.wants(Tensor("int", (BATCH,), BATCH))
    if number is None:
        return base if value is None and isinstance(index, ast.Name) and index.id not in counted else None
    if base.back:
        return base.by(usage.inserted(0, LENGTH))
    base.use.items = max(base.use.items, number + 1)
    return Ref(base.use.of_item())


def indexed(base: Ref, index: list[Any], several: dict[str, int]) -> Value:
    """`x[:, 0]`, `x[..., 3]`, `x[:, None]`; `several` has how many layers the index of a loop picks one of."""
    if any(isinstance(i, ast.Constant) and i.value is Ellipsis for i in index):
        number = integer(index[-1])
        if number is not None and not base.back:
            base.use.least_last = max(base.use.least_last, number + 1)
        return None
    news = [isinstance(i, ast.Constant) and i.value is None for i in index]
    own = [i for i, new in zip(index, news) if not new]  # noqa: B905
    base.has_least(len(own))
    numbers = [integer(i) for i in own]
    if len(own) == 2 and not base.back:
        ends = [integer(own[1].upper)] if isinstance(own[1], ast.Slice) and own[1].upper is not None else []
        constants = [n + 1 for n in numbers[1:] if n is not None and n >= 0] + [n for n in ends if n and n > 0]
        base.use.least_last = max([base.use.least_last, *constants])
    dropped = [axis for axis, i in enumerate(own) if not isinstance(i, ast.Slice)]
    for axis in reversed(dropped):
        count = several.get(getattr(own[axis], "id", ""))
        base = base.by(usage.inserted(axis, LENGTH) if count is None else usage.column(axis, count))
    made = 0
    for i, new in zip(index, news):  # noqa: B905
        if new:
            base = base.by(usage.without(made))
        made += new or isinstance(i, ast.Slice)
    return base
