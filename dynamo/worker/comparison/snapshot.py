"""What can be reached from some objects, by place (`self.layer.weight`, `argument 0['mask']`, `result[1]`): types,
texts, tensors with what is true of them besides their values, and who shares memory with whom.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from . import reach

Entry = dict[str, Any]
Entries = dict[str, Entry]

RESULT = "result"
"""The root that is told whole: with all values, and where it is an argument or a part of the module as well."""
MOST = 20_000
DEEPEST = 24
_MUTABLE = (list, dict, set, torch.nn.Module)


class Walk:
    """Looks at everything behind some roots.

    `copies` holds what tensors were before the call; with `values`, those that are not equal to theirs are copied.
    `earlier` is the walk before the call: memory and objects that it saw keep the names they had then.
    """

    def __init__(
        self,
        roots: Mapping[str, Any],
        copies: Mapping[int, torch.Tensor],
        values: bool = False,
        earlier: Walk | None = None,
    ) -> None:
        self.entries: Entries = {}
        self.versions: dict[int, int] = {}
        self._copies = copies
        self._values = values
        self._earlier = earlier
        self._objects: dict[int, str] = {}
        self._memory: dict[int, str] = {}
        self._alive: list[Any] = []
        self._tensors: list[tuple[str, torch.Tensor]] = []
        self._whole: set[int] = set()
        for path, value in roots.items():
            self._result = path == RESULT
            self._look(path, value, 0, "")

    def under(self, name: str) -> Entries:
        """The entries of one root."""
        return {p: e for p, e in self.entries.items() if p == name or p.startswith((f"{name}.", f"{name}["))}

    def tensors(self, root: str) -> list[torch.Tensor]:
        """The tensors behind a root."""
        return [tensor for path, tensor in self._tensors if path.startswith(root)]

    def changed(self, prefixes: tuple[str, ...]) -> Entries:
        """What is not as it was in the earlier walk; `changed` names the fields that are not, `gone` what is lost."""
        assert self._earlier is not None
        before, found = self._earlier.entries, {}
        for path, entry in self.entries.items():
            if path.startswith(prefixes):
                old = before.get(path, {})
                names = ({**old, **entry}).keys() - {"tensor"}
                fields = [name for name in names if old.get(name) != entry.get(name)]
                if fields:
                    found[path] = {**entry, "changed": sorted(fields)}
        for path in before:
            if path.startswith(prefixes) and path not in self.entries:
                found[path] = {"text": "gone", "changed": ["gone"]}
        return found

    def _look(self, path: str, value: Any, depth: int, role: str) -> None:
        if len(self.entries) >= MOST:
            return
        if isinstance(value, reach.PLAIN):
            entry: Entry = {"text": value if isinstance(value, (int, type(None))) else reach.text_of(value)}
            entry["type"] = type(value).__name__
            if isinstance(value, float) and math.isfinite(value):
                entry["number"] = value
        elif isinstance(value, torch.Tensor):
            entry = self._tensor(path, value)
        else:
            value = reach.unwrapped(value)
            self._object(path, value, depth, role)
            return
        if role:
            entry["role"] = role
        self.entries[path] = entry
        if isinstance(value, torch.Tensor) and value.is_leaf and value.grad is not None and not entry.get("again"):
            self._look(f"{path}.grad", value.grad, depth + 1, "")

    def _object(self, path: str, value: Any, depth: int, role: str) -> None:
        told = reach.state_text(value)
        if told is not None or not reach.is_open(value):
            closed = told or (reach.text_of(value) if reach.is_plain(value) else f"a {type(value).__qualname__}")
            self.entries[path] = {"text": closed, "type": type(value).__qualname__, "role": role}
            return
        entry: Entry = {"type": type(value).__qualname__, "role": role}
        self.entries[path] = entry
        identity = isinstance(value, _MUTABLE) or not isinstance(value, (tuple, frozenset))
        if identity:
            entry["same"], again = self._name_of(path, value)
            if again:
                entry["again"] = True
                return
        if isinstance(value, (list, tuple, set, frozenset, Mapping)):
            entry["length"] = len(value)
            if len(value) > reach.LONGEST:
                entry["digest"] = (
                    reach.digest(repr(value).encode("utf-8", "replace")) if reach.only_plain(value) else ""
                )
        roles: dict[str, str] = {}
        if isinstance(value, torch.nn.Module):
            entry["training"] = value.training
            entry["hooks"] = reach.hooks(value)
            roles = reach.registered(value)
        if depth < DEEPEST:
            for name, part in reach.parts(value):
                self._look(path + name, part, depth + 1, roles.get(name[1:], "") if roles else "")

    def _name_of(self, path: str, value: Any) -> tuple[str, bool]:
        """(the place where an object was seen first, the call before included; whether this walk saw it already)."""
        known = id(value) in self._objects
        first = self._objects.setdefault(id(value), path)
        if not known:
            self._alive.append(value)
        again = known
        if self._result:
            again = id(value) in self._whole
            self._whole.add(id(value))
        if self._earlier is not None and id(value) in self._earlier._objects:
            return self._earlier._objects[id(value)], again
        return (first if known else ("" if self._earlier is not None else path)), again

    def _tensor(self, path: str, tensor: torch.Tensor) -> Entry:
        entry: Entry = {
            "class": type(tensor).__qualname__,
            "dtype": str(tensor.dtype),
            "shape": list(tensor.shape) if not torch.nn.parameter.is_lazy(tensor) else None,
            "device": str(tensor.device),
            "layout": str(tensor.layout),
            "wants": tensor.requires_grad,
            "leaf": tensor.is_leaf,
        }
        entry["same"], again = self._name_of(path, tensor)
        self._tensors.append((path, tensor))
        if entry["shape"] is None or (again and not self._result):
            entry["again"] = True
            return entry
        if tensor.layout == torch.strided:
            try:
                entry["strides"] = [s for s, n in zip(tensor.stride(), tensor.shape) if n > 1]  # noqa: B905
                entry["offset"] = tensor.storage_offset() if tensor.numel() else 0
                entry["shared"] = tensor.device.type == "cpu" and tensor.is_shared()  # type: ignore[no-untyped-call]
                entry["memory"] = self._memory_of(path, tensor)
            except (RuntimeError, NotImplementedError):  # a subclass without memory of its own
                pass
        self.versions[id(tensor)] = _version(tensor)
        if self._values and (self._result or not self._unchanged(tensor)):
            entry["tensor"] = _copy(tensor)
            entry["written"] = True
        if again:
            entry["again"] = True
        return entry

    def _unchanged(self, tensor: torch.Tensor) -> bool:
        old = self._copies.get(id(tensor))
        if old is not None:
            same_form = old.shape == tensor.shape and old.dtype == tensor.dtype and old.device == tensor.device
            if same_form and old.layout == tensor.layout != torch.strided:  # torch.equal takes no sparse ones
                old, tensor = old.to_dense(), tensor.to_dense()
            return same_form and (torch.equal(old, tensor) or _equal_but_for_nan(old, tensor))
        versions = self._earlier.versions if self._earlier is not None else {}
        return versions.get(id(tensor)) == _version(tensor)

    def _memory_of(self, path: str, tensor: torch.Tensor) -> str:
        """The first place that lies in the same memory, the call before included; "" for memory of its own."""
        storage = tensor.untyped_storage()
        pointer = storage.data_ptr()
        if not pointer or not storage.nbytes():
            return ""
        if pointer not in self._memory:
            self._memory[pointer] = path
            self._alive.append(storage)
        if self._earlier is not None and pointer in self._earlier._memory:
            return self._earlier._memory[pointer]
        first = self._memory[pointer]
        return first if first != path or self._earlier is None else ""


def _version(tensor: torch.Tensor) -> int:
    try:
        return tensor._version
    except RuntimeError:  # made in inference mode
        return -1


def _equal_but_for_nan(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.is_floating_point() and bool(((a == b) | (a.isnan() & b.isnan())).all())


def _copy(tensor: torch.Tensor) -> torch.Tensor | None:
    try:
        dense = tensor.detach().to_dense() if tensor.layout != torch.strided else tensor.detach()
        return dense.to("cpu", copy=True).as_subclass(torch.Tensor)
    except (RuntimeError, NotImplementedError, TypeError):
        return None
