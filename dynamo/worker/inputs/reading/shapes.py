"""Values to try, as source text: tensors, and what holds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

BATCH, LENGTH = 2, 5
LARGEST = 1 << 24
"""Elements of the largest tensor that is tried."""
MOST_DIMENSIONS = 5


Combination = dict[str, Any]
"""Values to try, by parameter."""


class Tensor:
    """A tensor as source text. `kind` is "float", "unit" (from 0 to 1), "binary" (0.0 or 1.0), "int" (from `low`, below
    `high`), "ascending" (of such numbers, as those of the graph that each node is in) or "bool"; `array` where it is
    one of NumPy's.
    """

    def __init__(self, kind: str, shape: tuple[int, ...], high: int = 8, low: int = 0, *, array: bool = False) -> None:
        self.kind = kind
        self.shape = shape
        self.high = high
        self.low = low
        self.array = array

    def text(self) -> str:
        return f"{self._text()}.numpy()" if self.array else self._text()

    def _text(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        if self.kind in ("int", "ascending"):
            comma = "," if len(self.shape) == 1 else ""
            drawn = f"torch.randint({self.low}, {self.high}, ({sizes}{comma}))"
            return drawn if self.kind == "int" else f"{drawn}.sort().values"
        if self.kind == "binary":
            return f"torch.randint(0, 2, ({sizes}{',' if len(self.shape) == 1 else ''})).float()"
        if self.kind == "bool":
            return f"torch.ones({sizes or '()'}, dtype=torch.bool)"
        return f"torch.{'rand' if self.kind == 'unit' else 'randn'}({sizes or '()'})"

    def like(self, shape: tuple[int, ...]) -> Tensor | None:
        """The same kind of tensor in another shape; None where nobody would want that one."""
        size = 1
        for side in shape:
            size *= side
        fits = 0 < size <= LARGEST or not shape
        return Tensor(self.kind, shape, self.high, self.low, array=self.array) if fits else None

    def as_int(self, high: int) -> Tensor:
        """Indices in place of features: the last dimension goes."""
        shape = self.shape[:-1] if len(self.shape) > 1 and self.kind == "float" else self.shape
        return Tensor("int", shape, high, array=self.array)

    def as_array(self) -> Tensor:
        return Tensor(self.kind, self.shape, self.high, self.low, array=True)

    def of_rank(self, rank: int) -> Tensor | None:
        """The same tensor with another number of dimensions; the first and the last stay."""
        shape = self.shape
        if rank <= 0 or rank == len(shape) or rank > MOST_DIMENSIONS:
            return None
        if rank < len(shape):
            return self.like((*shape[: rank - 1], shape[-1]) if rank > 1 else shape[-1:])
        first, last = (shape[:1] or (BATCH,)), (shape[-1:] if len(shape) > 1 else (8,))
        return self.like((*first, *([LENGTH] * (rank - 2)), *last)) if rank > 1 else self.like((8,))


class Call:
    """A call with keyword arguments: `Inputs(tokens=..., mask=...)`."""

    def __init__(self, name: str, arguments: dict[str, Any]) -> None:
        self.name = name
        self.arguments = arguments


class Source:
    """Source text that stands for itself."""

    def __init__(self, text: str) -> None:
        self.text = text


def render(value: Any) -> str:
    """The source text of a value to try."""
    if isinstance(value, Tensor):
        return value.text()
    if isinstance(value, Source):
        return value.text
    if isinstance(value, Call):
        return f"{value.name}({', '.join(f'{name}={render(v)}' for name, v in value.arguments.items())})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {render(v)}" for name, v in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(render, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(render, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


def one_changed(value: Any, change: Callable[[Tensor], Tensor | None]) -> Iterator[Any]:
    """A container with one of its tensors changed at a time."""
    if isinstance(value, Call):
        yield from (Call(value.name, inner) for inner in one_changed(value.arguments, change))
    elif isinstance(value, (dict, list, tuple)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            whole = changed(item, change) if isinstance(item, Tensor) else None
            for made in one_changed(item, change) if whole is None else (whole,):
                if isinstance(value, dict):
                    yield {**value, key: made}
                else:
                    yield type(value)((*value[:key], made, *value[key + 1 :]))


def changed(value: Any, change: Callable[[Tensor], Tensor | None]) -> Any:
    """The value with each of its tensors changed; None where nothing changes."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Call):
        inner = changed(value.arguments, change)
        return None if inner is None else Call(value.name, inner)
    if isinstance(value, dict):
        found = {name: changed(item, change) for name, item in value.items()}
        found = {name: item for name, item in found.items() if item is not None}
        return {**value, **found} if found else None
    if isinstance(value, (list, tuple)):
        items = [changed(item, change) for item in value]
        if all(item is None for item in items):
            return None
        return type(value)(old if new is None else new for old, new in zip(value, items))  # noqa: B905
    return None


def each_changed(combination: Combination, change: Callable[[Tensor], Any]) -> Iterator[Combination]:
    """The combination with all tensors changed, then those of one argument, then one of those in a container."""
    found = {name: changed(value, change) for name, value in combination.items()}
    found = {name: value for name, value in found.items() if value is not None}
    if found:
        yield {**combination, **found}
    if len(found) > 1:
        for name, value in found.items():
            yield {**combination, name: value}
    for name in found:
        if not isinstance(combination[name], Tensor):
            yield from ({**combination, name: value} for value in one_changed(combination[name], change))
