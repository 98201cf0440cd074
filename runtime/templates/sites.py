"""The table of traced output calls. A graph names a call by its key and passes the values; no tensor is held here."""

from __future__ import annotations

import contextlib
import functools
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ..calls import Frame, call_from
from .template import Group, Mapping, Part


@dataclass(frozen=True, slots=True)
class Site:
    """One traced output call. `frames` are the user's frames around it, innermost first."""

    function: Part
    args: Group
    kwargs: Mapping
    frames: tuple[Frame, ...]
    condition: Part | None = None
    """What decides, when the graph runs, whether the call is made."""

    def run(self, tensors: Sequence[torch.Tensor], numbers: Sequence[int | float]) -> None:
        if self.condition is not None and not self.condition.fill(tensors, numbers):
            return
        function, waiting = self.function.fill(tensors, numbers), _state.waiting
        if function is not print or waiting is not None:
            # A logging handler may format later or on another thread, when the graph has reused the memory.
            tensors = [tensor.clone() for tensor in tensors]
        args, kwargs = self.args.fill(tensors, numbers), self.kwargs.fill(tensors, numbers)
        make([functools.partial(call_from, self.frames, function, args, kwargs)])

    def result(self, tensors: Sequence[torch.Tensor], numbers: Sequence[int | float]) -> Any:
        """What the call gives, made at once."""
        function = self.function.fill(tensors, numbers)
        return function(*self.args.fill(tensors, numbers), **self.kwargs.fill(tensors, numbers))


class _State(threading.local):
    waiting: list[Callable[[], None]] | None = None


_state = _State()


@contextlib.contextmanager
def held() -> Iterator[list[Callable[[], None]]]:
    """The output calls that graphs come to in here are not made but collected, with the values that they have there."""
    around, _state.waiting = _state.waiting, []
    try:
        yield _state.waiting
    finally:
        _state.waiting = around


def make(output: Iterable[Callable[[], None]]) -> None:
    """Makes output calls, unless a graph that is not done yet holds its own."""
    if _state.waiting is not None:
        _state.waiting += output
        return
    for call in output:
        call()


_sites: dict[str, Site] = {}
_lock = threading.Lock()


def add(site: Site) -> str:
    """Stores a call and returns its key: place and ordinal, so that equal programs make equal graphs."""
    frame = site.frames[0]
    place = f"{frame.scope.get('__name__', '')}:{frame.line}"
    with _lock:
        key, ordinal = place, 1
        while key in _sites:
            ordinal += 1
            key = f"{place}#{ordinal}"
        _sites[key] = site
    return key


def run(key: str, tensors: Sequence[torch.Tensor], numbers: Sequence[int | float]) -> None:
    """Makes the output call that a graph has come to."""
    if (site := _sites.get(key)) is None:
        lost = f"the output of {key} is lost: its graph was saved by another process"
        warnings.warn(lost, RuntimeWarning, stacklevel=1)
        return
    site.run(tensors, numbers)


def stored(key: str, tensors: Sequence[torch.Tensor], numbers: Sequence[int | float], count: int) -> list[torch.Tensor]:
    """Copies of the first tensors, after the call has stored to them."""
    copies = [tensor.detach().clone() for tensor in tensors[:count]]
    _found(key).result([*copies, *tensors[count:]], numbers)
    return copies


def result(
    key: str, tensors: Sequence[torch.Tensor], numbers: Sequence[int | float], size: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    """What a call on the host gives, a number or an array, as a tensor; raises where an array is not as it was said."""
    value = _found(key).result(tensors, numbers)
    if not len(size):
        return torch.tensor(value, dtype=dtype, device="cpu")
    array = torch.from_numpy(value)
    if array.shape != torch.Size(size) or array.dtype is not dtype:
        said = f"{dtype} of {tuple(size)}"
        raise RuntimeError(f"{key} gave an array of {array.dtype} of {tuple(array.shape)}, and was said to give {said}")
    return array.clone(memory_format=torch.contiguous_format)


def _found(key: str) -> Site:
    """A call whose value the graph needs; RuntimeError where it is not in the table."""
    if (site := _sites.get(key)) is None:
        raise RuntimeError(f"what {key} calls is lost: its graph was saved by another process")
    return site
