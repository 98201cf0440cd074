"""The numbers that a function may compare its tensors with: `>` and `>=` differ where both sides are equal alone."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map_only

from ..examples import Arguments

MOST = 8


def numbers(call: Any, given: Arguments) -> list[float]:
    """Those of the arguments, of the function's defaults and text, and of the module that it is called on."""
    found: list[float] = []
    tree_map_only((int, float), found.append, given)
    owner = getattr(call, "__self__", call)
    if isinstance(owner, torch.nn.Module):
        found += [value for value in vars(owner).values() if isinstance(value, (int, float))]
    function = _function(call)
    if function is not None:
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        found += [value for value in defaults if isinstance(value, (int, float))]
        found += _written(function.__code__)
    kept = [float(value) for value in found if type(value) is not bool and value != 0 and abs(value) < 1e6]
    return list(dict.fromkeys(kept))[:MOST]


def _function(call: Any) -> types.FunctionType | None:
    if isinstance(call, torch.nn.Module):
        call = type(call).forward
    for name in ("_torchdynamo_orig_callable", "__wrapped__", "__func__"):
        call = getattr(call, name, call)
    return call if isinstance(call, types.FunctionType) else None


def _written(code: types.CodeType) -> Iterator[float]:
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _written(value)
        elif isinstance(value, (int, float)):
            yield value
