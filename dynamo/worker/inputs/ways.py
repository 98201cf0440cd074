"""The arguments to try on one object: what the project gives it, what annotations, source, layers and names say, and
anything at all.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import torch

from ..project.values import UNKNOWN
from . import values
from .feedback import lacking, repairs
from .reading import layers, source_reading, written_shapes
from .reading.shapes import BATCH, Tensor, changed
from .reading.usage import Use

ANY_SHAPE = ((2, 8), (2, 4, 8), (2,), (8,), (8, 8), (2, 3, 16, 16), ())
"""Shapes tried where no layer demands one."""
MAIN_INPUTS = (
    "input_ids",
    "decoder_input_ids",
    "pixel_values",
    "input_features",
    "input_values",
    "inputs_embeds",
    "x",
    "inputs",
)
"""What models call their inputs where each of them has a default."""


class Ways:
    """The ways to call one object."""

    def __init__(self, instance: Any, function: Any, names: dict[str, Any]) -> None:
        is_module = isinstance(instance, torch.nn.Module)
        sides = layers.sides_of(instance) if is_module else layers.SIDES
        self.parameters = {p.name: p for p in _parameters(function)}
        self.names = names
        self.uses = source_reading.uses(function, getattr(function, "__self__", None), sides)
        told = written_shapes.stated(function, list(self.uses))
        for name, (stated, own) in written_shapes.sizes(told, instance).items():
            self.uses[name].stated, self.uses[name].stated_with_own = stated, own
        self.elsewhere = layers.anywhere(instance, sides) if is_module else []
        self.elsewhere += [Tensor("float", shape) for shape in ANY_SHAPE]

    def given(self, args: list[Any], kwargs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The arguments of a call in the project; what is unknown of them is made up, for batches of their size."""
        wanted, own, shared = self._known()
        known = {name: found[0] for name, found in own.items()}
        by_position = [p for p in self.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        told = {**{p.name: v for p, v in zip(by_position, args)}, **kwargs}  # noqa: B905
        told = {name: self._filled(name, value) for name, value in told.items() if value is not UNKNOWN}
        named = [p for p in self.parameters.values() if p in wanted or p.name in told]
        variadic = {p.name for p in named if p.kind is p.VAR_POSITIONAL}
        found = self._combination([p for p in named if p.name not in variadic], {**known, **told}, shared)
        more = [value for value in args[len(by_position) :] if value is not UNKNOWN] if variadic else []
        rest = {f"*{number}": value for number, value in enumerate(more)}
        size = _batch([t for t in told.values() if not isinstance(t, (int, float, str))])
        made_up = {n: v for n, v in found.items() if n.lstrip("*") not in told}
        alike = {n: changed(v, lambda t: _of_batch(t, size)) for n, v in made_up.items()} if size > BATCH else {}
        alike = {n: v for n, v in alike.items() if v is not None}
        if alike:
            yield {**found, **alike, **rest}
        yield {**found, **rest}

    def optional(self, args: list[Any], kwargs: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The same with what the project gives although it has a default, where that is unknown: it is made up."""
        by_position = [p for p in self.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        passed = {**{p.name: v for p, v in zip(by_position, args)}, **kwargs}  # noqa: B905
        wanted = {p.name for p in self._wanted()}
        unknown = [n for n, v in passed.items() if v is UNKNOWN and n in self.parameters and n not in wanted]
        shape = next((v for v in passed.values() if isinstance(v, Tensor)), self.elsewhere[0])
        made = {
            n: [*self._alternatives(self.parameters[n]), values.by_name(n, shape, self.uses.get(n))][0] for n in unknown
        }
        if made:
            told = {n: v for n, v in passed.items() if n not in made}
            yield from self.given([], {**told, **made})

    def _filled(self, name: str, value: Any) -> Any:
        return values.filled(name, value, self.uses.get(name, Use()), self.names)

    def shown(self) -> Iterator[dict[str, Any]]:
        """What the source shows: first all of it, then one argument after the other in another way."""
        wanted, own, shared = self._known()
        first = {name: found[0] for name, found in own.items()}
        yield self._combination(wanted, first, shared)
        for number in range(1, max(map(len, own.values()), default=0)):
            yield self._combination(wanted, {n: v[min(number, len(v) - 1)] for n, v in own.items()}, shared)
        for name, found in own.items():
            for value in found[1:]:
                yield self._combination(wanted, {**first, name: value}, shared)

    def any_shape(self) -> Iterator[dict[str, Any]]:
        """Whatever any layer takes, and any shape at all: for what nothing is known of, then for every tensor."""
        wanted, own, _ = self._known()
        others = {name: found for name, found in own.items() if not isinstance(found[0], Tensor)}
        several = {name: found for name, found in others.items() if not _is_several(found[0])}
        for known in (own, others, *([several] if len(several) < len(others) else [])):
            for shape in self.elsewhere:
                yield self._combination(wanted, {name: found[0] for name, found in known.items()}, shape)

    def _known(self) -> tuple[list[inspect.Parameter], dict[str, list[Any]], Tensor]:
        """The parameters to give, what is known of some of them, and the shape that the others take."""
        wanted = self._wanted()
        own = {p.name: self._alternatives(p) for p in wanted}
        own = {name: found for name, found in own.items() if found}
        known = [v for found in own.values() for v in found if isinstance(v, Tensor) and v.kind == "float"]
        return wanted, own, next(iter(known), self.elsewhere[0])

    def _combination(self, wanted: list[inspect.Parameter], own: dict[str, Any], shape: Tensor) -> dict[str, Any]:
        found: dict[str, Any] = {}
        first = next((v for v in own.values() if isinstance(v, Tensor)), shape)  # masks are of what is masked
        for p in wanted:
            use = self.uses.get(p.name)
            like = first if "mask" in p.name else shape
            value = own[p.name] if p.name in own else values.by_name(p.name, like, use)
            if use is not None and use.array and isinstance(value, Tensor):
                value = value.as_array()
            if p.kind is p.VAR_KEYWORD:
                found.update(value if isinstance(value, dict) else {})
            else:
                found[self._passed_as(p)] = value
        return found

    @staticmethod
    def _passed_as(parameter: inspect.Parameter) -> str:
        keyword = parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty
        return parameter.name if keyword else "*" + parameter.name

    def _alternatives(self, parameter: inspect.Parameter) -> list[Any]:
        use = self.uses.get(parameter.name, Use())
        return values.alternatives(parameter.name, parameter.annotation, use, self.names)

    def _wanted(self) -> list[inspect.Parameter]:
        """The parameters to give a value: those without default, or else the well-known inputs of a model."""
        parameters = list(self.parameters.values())
        named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        required = [p for p in named if p.default is p.empty]
        required += [p for p in parameters if p.kind is p.VAR_KEYWORD and self._keys(p)]
        usual = [p for p in named if p.name in MAIN_INPUTS]
        if "input_ids" in self.parameters:  # token ids make embeddings of them needless
            usual = [p for p in usual if p.name != "inputs_embeds"]
        variadic = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
        return required or usual or named[:1] or variadic

    def _keys(self, parameter: inspect.Parameter) -> bool:
        use = self.uses.get(parameter.name)
        return use is not None and bool(set(use.keys) - use.optional)

    def with_missing(self, error: BaseException, combination: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The combination and the optional parameters, keys or attributes that an error speaks of."""
        yield from lacking.completed(error, combination, self.uses, self.names)
        unpacked = re.search(r"values to unpack \(expected (\d+)", str(error.__cause__ or error))
        for name in combination if unpacked is not None else ():
            use = self.uses.get(name.lstrip("*"), Use())
            parts = values.unpacked(use) if unpacked is not None and len(use.parts) == int(unpacked[1]) else None
            if parts is not None and not isinstance(combination[name], (list, tuple)):
                yield {**combination, name: parts}
        given = {name.lstrip("*") for name in combination}
        shape = next((v for v in combination.values() if isinstance(v, Tensor)), self.elsewhere[0])
        absent = [p for n, p in self.parameters.items() if n not in given and p.default is not p.empty]
        for parameter in absent:
            if repairs.speaks_of(error, parameter.name):
                found = self._alternatives(parameter) or [values.by_name(parameter.name, shape)]
                for value in found[:2]:
                    yield {**combination, parameter.name: value}


def _is_several(value: Any) -> bool:
    """Whether it is a list of tensors: where none is taken, one of all of them may be, and is looped over."""
    return isinstance(value, list) and all(isinstance(item, Tensor) for item in value)


def _batch(told: list[Any]) -> int:
    """The first size that most of these tensors have."""
    sizes: list[int] = []

    def keep(t: Tensor) -> None:
        sizes.extend(t.shape[:1])

    changed(told, keep)
    return max(sizes, key=sizes.count, default=0)


def _of_batch(t: Tensor, size: int) -> Tensor | None:
    return t.like((size, *t.shape[1:])) if t.shape[:1] == (BATCH,) else None


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
