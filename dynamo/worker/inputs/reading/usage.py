"""How a function uses its parameters, as its source shows: which layers each one reaches, what is unpacked, indexed,
called, or looked up by name in it.

A hint and no proof: names are followed in the order of the text, and an eager run decides whether the inputs fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .shapes import LENGTH, Tensor

Back = Callable[[Any], Any]
"""From the shape of what was made of a parameter to the shape that the parameter must have; None where none will do."""


class Use:
    """What is known about one parameter, or about one item of it."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        """What the layers accept that get it, first use first."""
        self.rank: int | None = None
        self.least_rank = 0
        self.least_last = 0
        """The last dimension has at least so many elements: the largest constant index, and one more."""
        self.stated: tuple[int, ...] = ()
        """The shape that the text around the code states; () where it states none."""
        self.stated_with_own = False
        """Does that shape name a size that the object, or its settings, has?"""
        self.keys: dict[str, Use] = {}
        self.optional: set[str] = set()
        """Keys that it is asked for before they are used."""
        self.attributes: dict[str, Use] = {}
        self.items = 0
        """How many items it is unpacked into, or the largest constant index, and one more."""
        self.iterated = False
        self.item: Use | None = None
        self.parts: list[tuple[str, Use]] = []
        """What it is unpacked into, by name: `tokens, lengths = batch`."""
        self.methods: set[str] = set()
        """Which methods and attributes of tensors it is asked for."""
        self.choices: list[str] = []
        """Texts that it is compared with."""
        self.calls: int | None = None
        """How many positional arguments it is called with."""
        self.sizes: dict[int, int] = {}
        """The sizes that it is refused without, by dimension."""
        self.bounds = False
        """Is it a bound of a slice?"""
        self.counted = False
        """Is its length taken?"""
        self.array = False
        """Is a tensor made of it?"""

    @property
    def is_sequence(self) -> bool:
        return self.iterated or self.items > 0

    def of_item(self) -> Use:
        self.item = self.item or Use()
        return self.item

    def wants(self, tensor: Tensor) -> None:
        if all(known.text() != tensor.text() for known in self.tensors):
            self.tensors.append(tensor)


class Ref:
    """A value made from a parameter by steps that only move its dimensions."""

    def __init__(self, use: Use, back: tuple[Back, ...] = ()) -> None:
        self.use = use
        self.back = back

    def by(self, step: Back) -> Ref:
        return Ref(self.use, (*self.back, step))

    def wants(self, tensor: Tensor) -> None:
        """Some layer accepts `tensor` here."""
        shape: Any = tensor.shape
        for step in reversed(self.back):
            shape = (getattr(step, "of_indices", step) if tensor.kind == "int" else step)(shape)
            if shape is None:
                return
        made = tensor.like(tuple(shape))
        if made is not None:
            self.use.wants(made)

    @property
    def more(self) -> int | None:
        """How many dimensions it has more than the parameter; None where the steps do not tell."""
        total = 0
        for step in self.back:
            more: int | None = getattr(step, "more", None)
            if more is None:
                return None
            total += more
        return total

    def has_rank(self, rank: int) -> None:
        if self.more is not None and rank > self.more:
            self.use.rank = self.use.rank or rank - self.more

    def has_least(self, rank: int) -> None:
        if self.more is not None:
            self.use.least_rank = max(self.use.least_rank, rank - self.more)

    def has_axis(self, axis: int) -> None:
        self.has_least(axis + 1 if axis >= 0 else -axis)


def unpacked(use: Use, targets: list[Any]) -> list[Ref | None]:
    """The parts of a value, each under the name that it is bound to."""
    use.of_item()
    if len(use.parts) != len(targets):
        use.parts = [(getattr(target, "id", ""), Use()) for target in targets]
    return [Ref(part) for _, part in use.parts]


class ShapeOf:
    """`x.shape` or `x.size()` of a value."""

    def __init__(self, ref: Ref) -> None:
        self.ref = ref


class SizeOf:
    """`x.shape[1]` or `x.size(1)` of a value; `x.dim()` where `axis` is None."""

    def __init__(self, ref: Ref, axis: int | None) -> None:
        self.ref = ref
        self.axis = axis

    def must_be(self, number: int) -> None:
        """What has another size, or another number of dimensions, is refused."""
        if self.axis is None:
            self.ref.has_rank(number)
        elif not self.ref.back:
            self.ref.use.sizes.setdefault(self.axis, number)


class Rest:
    """`x.shape[2:]` of a value: the sizes of its dimensions from one on."""

    def __init__(self, ref: Ref, axis: int) -> None:
        self.ref = ref
        self.axis = axis


class Unbound:
    """`x.unbind(axis)`, whose parts are told by what they are bound to."""

    def __init__(self, ref: Ref, axis: int) -> None:
        self.ref = ref
        self.axis = axis


class Known:
    """A value that exists already: a module, a size, a function."""

    def __init__(self, value: Any) -> None:
        self.value = value


Value = Any
"""`Ref`, `ShapeOf`, `SizeOf`, `Rest`, `Unbound`, `Known`, a tuple of values, or None: anything that nothing is
known about.
"""


class Reading:
    """What all functions share that are read for the sake of one: what is left to read, what objects keep."""

    def __init__(self, sides: tuple[int, ...], steps: int, *, of_tensors: bool) -> None:
        self.sides = sides
        self.tensor = torch.Tensor if of_tensors else object
        self.steps = steps
        self.kept: dict[tuple[int, str], Ref] = {}
        """The parameters that an object, by its identity, keeps as an attribute."""

    def keep(self, owner: Any, name: str, value: Value) -> None:
        self.kept.pop((id(owner), name), None)
        if isinstance(value, Ref):
            self.kept[id(owner), name] = value


def transposed(one: int, other: int) -> Back:
    def back(shape: Any) -> Any:
        if not (-len(shape) <= one < len(shape) and -len(shape) <= other < len(shape)):
            return None
        sizes = list(shape)
        sizes[one], sizes[other] = sizes[other], sizes[one]
        return tuple(sizes)

    return keeping(back)


def permuted(order: tuple[int, ...]) -> Back:
    def back(shape: Any) -> Any:
        if sorted(n % len(order) for n in order) != list(range(len(shape))):
            return None
        return tuple(shape[[n % len(order) for n in order].index(axis)] for axis in range(len(order)))

    return keeping(back)


def features(size: int) -> Back:
    """Back from a layer that takes so many features, and gives others."""
    return keeping(lambda shape: (*shape[:-1], size))


def embedded() -> Back:
    """Back from a layer that gives features for each index: what takes those says nothing of the indices' sizes."""
    return keeping(lambda shape: None, 1)


def keeping(step: Back, more: int = 0) -> Back:
    """A step that has as many dimensions behind it as in front, or so many more."""
    step.more = more  # type: ignore[attr-defined]
    return step


def without(axis: int) -> Back:
    """Back from `unsqueeze(axis)`: what a layer takes as features has not just been made."""

    def back(shape: Any) -> Any:
        at = axis if axis >= 0 else len(shape) + axis
        free = 0 <= at < len(shape) and (at < len(shape) - 1 or shape[at] == 1)
        return (*shape[:at], *shape[at + 1 :]) if free else None

    return keeping(back, 1)


def inserted(axis: int, size: int) -> Back:
    """Back from taking one element along an axis."""

    def back(shape: Any) -> Any:
        at = axis if axis >= 0 else len(shape) + 1 + axis
        return (*shape[:at], size, *shape[at:]) if 0 <= at <= len(shape) else None

    return back


def column(axis: int, count: int) -> Back:
    """Back from taking one of `count` elements along an axis, each for a layer of its own: indices are one in each."""
    back = inserted(axis, count)
    back.of_indices = lambda shape: (*shape[:axis], count)  # type: ignore[attr-defined]
    return back


def merged(axis: int, more: int) -> Back:
    """Back from a dimension that so many more were made into."""

    def back(shape: Any) -> Any:
        at = axis if axis >= 0 else len(shape) + axis
        return (*shape[: at + 1], *[LENGTH] * more, *shape[at + 1 :]) if 0 <= at < len(shape) else None

    return keeping(back, -more)


def last_of_two(shape: Any) -> Any:
    """Back from a `view(-1, n)` or `flatten(1)`: a matrix is one already."""
    return shape if len(shape) == 2 else None
