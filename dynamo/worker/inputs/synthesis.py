"""Inputs for code that declares none: the object to call (`constructors`), then its arguments, from what annotations,
source, layers and names say; and what an error message says that it wanted instead.

Each candidate is a source text such as `Net(16, heads=2)(torch.randn(2, 16))`; an eager run decides whether it fits.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import math
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from ..discover import Target
from ..errors import Unusable
from ..project.values import UNKNOWN
from . import constructors, from_project, values
from .examples import Example, evaluate, from_call, namespace, shown_init, speaks_about
from .feedback import repairs
from .reading import layers, source_reading, written_shapes
from .reading.shapes import Tensor, render
from .reading.usage import Use
from .variation import variants

TRIES = 48
MOST_REMADE = 24
"""Constructor calls that one failing call leads to."""
FEW = 4
"""Constructor calls that an error leads to which is more likely one of the inputs."""
SLOW_SECONDS = 0.2
ANY_SHAPE = ((2, 8), (2, 4, 8), (2,), (8,), (8, 8), (2, 3, 16, 16), ())
"""Shapes tried where no layer demands one."""
LARGE = 1 << 20
"""Elements of inputs that are tried after all smaller ones: such a try may take most of the time that there is."""
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


def candidates(target: Target, module: ModuleType, entries: list[dict[str, str]]) -> Iterator[Example]:
    """Examples to try, likely ones first; each failure may add better ones.

    A declared `init` without inputs is used.
    """
    given = [shown_init(target, e["init"]) for e in entries if e.get("init") and speaks_about(e, target)]
    makings = map(constructors.Making, given) if given else constructors.makings(target, module)
    for making, made, learn in _made(makings, target, module):
        text = making.text
        if isinstance(made, Unusable):
            yield _failing(text, made)
            continue
        prefix = text if target.method is None else f"{text}.{target.method}"
        for combination, failed in _calls(made, making.calls):
            arguments = [v if n.startswith("*") else f"{n}={v}" for n, v in combination.items()]
            example = from_call(target, module, f"{prefix}({', '.join(arguments)})")
            example.origin, example.declared = making.origin, False
            example.build, example.failed = made.for_a_try, _both(failed, learn)
            yield example


def _made(
    makings: Iterator[constructors.Making], target: Target, module: ModuleType
) -> Iterator[tuple[constructors.Making, Made | Unusable, Callable[[BaseException], None]]]:
    """Each way with the object that it makes, or why it makes none; then what that asks for, or what an error of a run
    asks for that is told.
    """
    seen: set[tuple[str, str]] = set()
    guessed: list[constructors.Making] = []
    for first in itertools.chain(makings, _one_by_one(guessed)):
        queue = [first]
        for number, making in enumerate(queue):
            if number > MOST_REMADE:
                break
            if making.key in seen:
                continue
            seen.add(making.key)
            found = _After(making, queue, guessed)
            try:
                made: Made | Unusable = Made(making.text, target, module)
            except Unusable as error:
                made = error
                found.of_constructor(error)
            yield making, made, found.of_run


def _one_by_one(guessed: list[constructors.Making]) -> Iterator[constructors.Making]:
    for number in range(MOST_REMADE):
        if number < len(guessed):
            yield guessed[number]


class _After:
    """What the errors of one way to make the object lead to."""

    def __init__(
        self, making: constructors.Making, queue: list[constructors.Making], guessed: list[constructors.Making]
    ) -> None:
        self.making = making
        self.queue = queue
        self.guessed = guessed
        self.told = False

    def of_constructor(self, error: BaseException) -> None:
        for other in self.making.after(error):
            (self.guessed if other.guessed else self.queue).append(other)

    def of_run(self, error: BaseException) -> None:
        if isinstance(error, TypeError):  # of what was made, not of a tensor's shape
            self.of_constructor(error)
        elif not self.told:
            self.guessed += [other for other in self.making.after(error) if other.guessed][:FEW]
        self.told = True


def _both(*told: Callable[[BaseException], None]) -> Callable[[BaseException], None]:
    def tell(error: BaseException) -> None:
        for each in told:
            each(error)

    return tell


class Made:
    """The object that a constructor's text makes. Each try gets one that no other try has changed."""

    def __init__(self, text: str, target: Target, module: ModuleType) -> None:
        self.text = text
        self.module = module
        self.target = target
        began = time.monotonic()
        self.instance = self._make()
        self._slow = time.monotonic() - began > SLOW_SECONDS
        self._fresh = True

    def _make(self) -> Any:
        variants.seed(0)
        return evaluate(self.text, namespace(self.module), "constructor of " + self.target.name)

    def for_a_try(self) -> Any:
        """The object, as it was made: to copy the weights of a large model takes less time than to draw them."""
        if self._slow and isinstance(self.instance, torch.nn.Module):
            with contextlib.suppress(Exception):  # not everything can be copied
                return copy.deepcopy(self.instance)
        made = self.instance if self._fresh else self._make()
        self._fresh = False
        return made

    @property
    def function(self) -> Any:
        """What is called, as Python sees it."""
        called = self.instance if self.target.method is None else getattr(self.instance, self.target.method)
        is_module = called is self.instance and isinstance(called, torch.nn.Module)
        return called.forward if is_module else getattr(called, "_torchdynamo_orig_callable", called)


def _failing(text: str, error: Unusable) -> Example:
    """A constructor that raises: kept as a candidate, so that its reason is told."""

    def build() -> Any:
        raise error

    return Example("synthesised", text, build, lambda: [((), {})], declared=False)


def _calls(
    made: Made, given: list[from_project.Inputs]
) -> Iterator[tuple[dict[str, str], Callable[[BaseException], None]]]:
    """Arguments as source text, each with what is to be told of a failure; those of the project come first."""
    parameters = _parameters(made.function)
    ways = _Ways(made, parameters)
    queue = [*(ways.given(*inputs) for inputs in given), *ways.shown()]
    later = list(ways.any_shape())
    seen: set[str] = set()
    errors: set[str] = set()
    while (queue or later) and len(seen) < TRIES:
        combination = (queue or later).pop(0)
        texts = {name: render(value) for name, value in combination.items()}
        if repr(texts) in seen:
            continue
        seen.add(repr(texts))

        def failed(error: BaseException, combination: dict[str, Any] = combination) -> None:
            said = str(error.__cause__ or error)
            new = said not in errors  # what fails in another way got further, most often
            errors.add(said)
            guesses = list(repairs.guesses(error, combination))
            better = [*repairs.after(error, combination), *ways.with_missing(error, combination)]
            queue[:0] = [each for each in better if _elements(each) <= LARGE]
            later.extend(each for each in better if _elements(each) > LARGE)
            if new and len(errors) > 1:
                queue.extend(guesses)
            else:
                later[:0] = guesses

        yield texts, failed


def _elements(combination: dict[str, Any]) -> int:
    return sum(math.prod(value.shape) for value in combination.values() if isinstance(value, Tensor))


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


class _Ways:
    """The ways to call one object."""

    def __init__(self, made: Made, parameters: list[inspect.Parameter]) -> None:
        instance, function = made.instance, made.function
        is_module = isinstance(instance, torch.nn.Module)
        sides = layers.sides_of(instance) if is_module else layers.SIDES
        self.parameters = {p.name: p for p in parameters}
        self.names = vars(made.module)
        self.uses = source_reading.uses(function, getattr(function, "__self__", None), sides)
        told = written_shapes.stated(function, list(self.uses))
        for name, stated in written_shapes.sizes(told, instance).items():
            self.uses[name].stated = stated
        self.elsewhere = layers.anywhere(instance, sides) if is_module else []
        self.elsewhere += [Tensor("float", shape) for shape in ANY_SHAPE]

    def given(self, args: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call in the project; what is unknown of them is made up."""
        wanted, own, shared = self._known()
        known = {name: found[0] for name, found in own.items()}
        by_position = [p for p in self.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        told = {**{p.name: v for p, v in zip(by_position, args)}, **kwargs}  # noqa: B905
        told = {name: self._filled(name, value) for name, value in told.items() if value is not UNKNOWN}
        named = [p for p in self.parameters.values() if p in wanted or p.name in told]
        variadic = {p.name for p in named if p.kind is p.VAR_POSITIONAL}
        found = self._combination([p for p in named if p.name not in variadic], {**known, **told}, shared)
        more = [value for value in args[len(by_position) :] if value is not UNKNOWN] if variadic else []
        return {**found, **{f"*{number}": value for number, value in enumerate(more)}}

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
        for known in (own, others):
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
        """The combination and the optional parameters that an error speaks of."""
        given = {name.lstrip("*") for name in combination}
        shape = next((v for v in combination.values() if isinstance(v, Tensor)), self.elsewhere[0])
        absent = [p for n, p in self.parameters.items() if n not in given and p.default is not p.empty]
        for parameter in absent:
            if repairs.speaks_of(error, parameter.name):
                found = self._alternatives(parameter) or [values.by_name(parameter.name, shape)]
                for value in found[:2]:
                    yield {**combination, parameter.name: value}
