"""The variables of a file that a call may change, and how they get their values back."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from . import reach

_PLAIN = (bool, int, float, str, type(None))


def of(module: types.ModuleType | None) -> dict[str, Any]:
    """Numbers, texts, containers, tensors and objects; attributes of the file's classes; what its functions keep in
    defaults and attributes.
    """
    found: dict[str, Any] = {}
    for name, value in sorted(vars(module).items()) if module is not None else ():
        if name.startswith("__") or isinstance(value, types.ModuleType):
            continue
        own = getattr(value, "__module__", None) == vars(module).get("__name__")
        if isinstance(value, type):
            items = [(key, item) for key, item in sorted(vars(value).items()) if not key.startswith("_")]
            found.update({f"global {name}.{k}": v for k, v in items if own and (_plain(v) or _may_change(v))})
        elif isinstance(value, types.FunctionType):
            kept = {"defaults": value.__defaults__, **value.__dict__, **(value.__kwdefaults__ or {})}
            found.update({f"global {name}.{k}": v for k, v in kept.items() if own and _may_change(v)})
        elif _plain(value) or _may_change(value):
            found[f"global {name}"] = value
    return found


def _plain(value: Any) -> bool:
    return isinstance(value, _PLAIN)


def _may_change(value: Any) -> bool:
    if isinstance(value, (tuple, torch.Tensor, torch.Generator, torch.nn.Module)):
        return True
    descriptor = hasattr(type(value), "__get__")
    return not descriptor and not callable(value) and reach.is_open(value)


def rebinding(module: types.ModuleType | None) -> Callable[[], None]:
    """What gives the names of a file, and the attributes of its classes, the values that they have now.

    Names with two underscores stay: TorchDynamo puts what it compiled there.
    """
    if module is None:
        return lambda: None
    tables: list[tuple[Any, dict[str, Any]]] = [(module, names(module))]
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__:
            tables.append((value, names(value)))

    def restore() -> None:
        for owner, kept in tables:
            now = names(owner)
            for name in [name for name in now if name not in kept and not callable(now[name])]:
                delattr(owner, name)
            for name, value in kept.items():
                if now.get(name, owner) is not value:
                    setattr(owner, name, value)

    return restore


def names(owner: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(owner).items() if not name.startswith("__")}
