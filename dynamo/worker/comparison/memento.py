"""Remembers what objects hold, and puts it back: every run begins in the same state, whatever ran before."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any

import torch

from . import reach

MOST = 20_000
"""Objects that are remembered; what lies behind them keeps what earlier runs left."""
BYTES = 1 << 29
"""Of tensors that are remembered; a module's own are (`state_dict`), whatever their size."""


class Memento:
    """What some objects and everything behind them hold now.

    Objects stay the same ones and get their contents back.
    """

    def __init__(self, roots: Iterable[Any], bytes_: float = BYTES) -> None:
        self._seen: set[int] = set()
        self._alive: list[Any] = []
        self._undo: list[Callable[[], None]] = []
        self._left = bytes_
        self.complete = True
        """Whether the values of all tensors are remembered; where there are too many bytes of them, some are not."""
        self.copies: dict[int, torch.Tensor] = {}
        """What tensors held, by their `id`."""
        waiting = [reach.unwrapped(root) for root in roots]
        while waiting and len(self._seen) < MOST:
            waiting += self._remember(reach.unwrapped(waiting.pop()))

    def restore(self) -> None:
        with torch.no_grad():
            for undo in self._undo:
                undo()

    def _remember(self, value: Any) -> list[Any]:
        """Remembers one object; returns what it holds."""
        if id(value) in self._seen:
            return []
        if isinstance(value, torch.Tensor):
            self._note(value)
            self._tensor(value)
            return [value.grad] if value.is_leaf and value.grad is not None else []
        if isinstance(value, torch.Generator):
            self._note(value)
            state = value.get_state()
            self._undo.append(lambda: void(value.set_state(state)))
            return []
        if reach.is_plain(value) or not reach.is_open(value):
            return []
        self._note(value)
        if isinstance(value, torch.nn.Module) and any(
            torch.nn.parameter.is_lazy(t)
            for t in (*value._parameters.values(), *value._buffers.values())
            if t is not None
        ):
            return list(value._modules.values())  # it becomes another module in its first call
        self._contents(value)
        return [part for _, part in reach.parts(value)]

    def _note(self, value: Any) -> None:
        self._seen.add(id(value))
        self._alive.append(value)

    def _tensor(self, tensor: torch.Tensor) -> None:
        if torch.nn.parameter.is_lazy(tensor) or not tensor.is_leaf or tensor.layout != torch.strided:
            return
        wants, gradient, size = tensor.requires_grad, tensor.grad, tensor.numel() * tensor.element_size()
        data = tensor.data
        self._left -= size
        copy = data.clone() if self._left > 0 else None
        if copy is not None:
            self.copies[id(tensor)] = copy
        else:
            self.complete = False

        def undo() -> None:
            if tensor.data_ptr() != data.data_ptr() or tensor.shape != data.shape or not tensor.is_leaf:
                tensor.detach_().requires_grad_(False)
                tensor.data = data
            if copy is not None:
                data.copy_(copy)
            if tensor.is_leaf:
                tensor.requires_grad_(wants)
            tensor.grad = gradient

        self._undo.append(undo)

    def _contents(self, value: Any) -> None:
        if isinstance(value, dict):
            items = dict(value)
            self._undo.append(lambda: replace_mapping(value, items))
        elif isinstance(value, (list, deque)):
            elements = list(value)
            self._undo.append(lambda: replace_sequence(value, elements))
        elif isinstance(value, set):
            members = set(value)
            self._undo.append(lambda: replace_set(value, members))
        kept = getattr(value, "__dict__", None)
        if isinstance(kept, dict):
            names = dict(kept)
            self._undo.append(lambda: replace_mapping(kept, names))
        if isinstance(value, torch.nn.Module):
            for name, group in names.items():
                if isinstance(group, (dict, set)) and reach.is_own(name):
                    self._group(group)

    def _group(self, group: Any) -> None:
        """A module's table of parameters, buffers, parts or hooks."""
        copy = group.copy()
        put = replace_mapping if isinstance(group, dict) else replace_set
        self._undo.append(lambda: put(group, copy))


def void(_: Any) -> None:
    return None


def replace_mapping(mapping: dict[Any, Any], items: dict[Any, Any]) -> None:
    """Touches only what differs: compiled code may watch the rest. Methods of subclasses are passed by."""
    base: Any = OrderedDict if isinstance(mapping, OrderedDict) else dict
    for key in [key for key in mapping if key not in items]:
        base.__delitem__(mapping, key)
    for key, item in items.items():
        if base.get(mapping, key, mapping) is not item:
            base.__setitem__(mapping, key, item)
    if list(mapping) != list(items):
        base.clear(mapping)
        base.update(mapping, items)


def replace_sequence(sequence: Any, elements: list[Any]) -> None:
    if len(sequence) != len(elements) or any(a is not b for a, b in zip(sequence, elements)):  # noqa: B905
        sequence.clear()
        sequence.extend(elements)


def replace_set(found: set[Any], members: set[Any]) -> None:
    found.clear()
    found.update(members)
