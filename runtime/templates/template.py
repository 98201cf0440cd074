"""An output call with holes: all of it that is known while tracing, and where the values of the running graph go."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from .tensor_appearance import Appearance, restore_appearance

Tensors = Sequence[torch.Tensor]
Numbers = Sequence[int | float]


class Part(Protocol):
    """A part of an output call."""

    def fill(self, tensors: Tensors, numbers: Numbers) -> Any:
        """The value of this part, given what the graph computed."""


@dataclass(frozen=True, slots=True)
class Constant:
    value: Any

    def fill(self, tensors: Tensors, numbers: Numbers) -> Any:
        return self.value


@dataclass(frozen=True, slots=True)
class Stream:
    """`sys.stdout` or `sys.stderr`, whichever object stands there when the output happens."""

    name: str

    def fill(self, tensors: Tensors, numbers: Numbers) -> Any:
        return getattr(sys, self.name)


@dataclass(frozen=True, slots=True)
class Tensor:
    index: int
    look: Appearance

    def fill(self, tensors: Tensors, numbers: Numbers) -> Any:
        return restore_appearance(tensors[self.index], self.look)


@dataclass(frozen=True, slots=True)
class Number:
    index: int

    def fill(self, tensors: Tensors, numbers: Numbers) -> Any:
        return numbers[self.index]


@dataclass(frozen=True, slots=True)
class Group:
    """A tuple, list, `torch.Size` or named tuple: `make` builds it from a list of its items."""

    make: Callable[[list[Any]], Any]
    items: tuple[Part, ...]

    def fill(self, tensors: Tensors, numbers: Numbers) -> Any:
        return self.make([item.fill(tensors, numbers) for item in self.items])


@dataclass(frozen=True, slots=True)
class Mapping:
    items: tuple[tuple[Any, Part], ...]

    def fill(self, tensors: Tensors, numbers: Numbers) -> dict[Any, Any]:
        return {key: part.fill(tensors, numbers) for key, part in self.items}


@dataclass(frozen=True, slots=True)
class Attribute:
    """A method of an object; looked up when it is wanted, as the interpreter does."""

    owner: Part
    name: str

    def fill(self, tensors: Tensors, numbers: Numbers) -> Any:
        return getattr(self.owner.fill(tensors, numbers), self.name)


@dataclass(frozen=True, slots=True)
class Call:
    """A call made when the output happens."""

    function: Part
    args: Part
    kwargs: Part

    def fill(self, tensors: Tensors, numbers: Numbers) -> Any:
        function = self.function.fill(tensors, numbers)
        return function(*self.args.fill(tensors, numbers), **self.kwargs.fill(tensors, numbers))
