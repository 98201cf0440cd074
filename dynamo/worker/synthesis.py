"""Inputs for code that declares none: constructor arguments from defaults, annotations and small values; tensors
from the layers, annotations and names; and what an error message says that it wanted instead.

Each candidate is a source text such as `Net(16, heads=2)(torch.randn(2, 16))`; an eager run decides whether it fits.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from . import configs, repairs, variants
from .discover import Target
from .errors import Unusable
from .examples import Example, evaluate, from_call, namespace, shown_init, speaks_about
from .shapes import Tensor, from_annotation, from_layers, from_name

TRIES = 48
ANY_SHAPE = ((2, 8), (2, 4, 8), (8,), (8, 8), (2, 3, 16, 16), ())
"""Shapes tried where no layer demands one."""


def candidates(target: Target, module: ModuleType, entries: list[dict[str, str]]) -> Iterator[Example]:
    """Examples to try, likely ones first; each failure may add better ones.

    A declared `init` without inputs is used.
    """
    given = [shown_init(target, e["init"]) for e in entries if e.get("init") and speaks_about(e, target)]
    for made in given or constructors(target, module):
        try:
            variants.seed(0)
            instance = evaluate(made, namespace(module), "constructor of " + target.name)
        except Unusable as error:
            yield _failing(made, error)
            continue
        call = instance if target.method is None else getattr(instance, target.method)
        prefix = made if target.method is None else f"{made}.{target.method}"
        yield from _calls(target, module, prefix, call, instance)


def _failing(text: str, error: Unusable) -> Example:
    """A constructor that raises: kept as a candidate, so that its reason is told."""

    def build() -> Any:
        raise error

    return Example("synthesised", text, build, lambda: [((), {})], declared=False)


def constructors(target: Target, module: ModuleType) -> Iterator[str]:
    """Source texts that make the object to call."""
    if target.kind != "class":
        yield target.name.partition(".")[0]
        return
    name = target.name.partition(".")[0]
    try:
        parameters = list(inspect.signature(target.value.__init__).parameters.values())[1:]
    except (TypeError, ValueError):
        parameters = []
    for small in ({}, {"dim": 8, "heads": 1}, {"dim": 64, "heads": 4}):
        arguments: list[str] = []
        for parameter in parameters:
            text = _constructor_argument(parameter, target, module, small)
            if text is not None:
                positional = parameter.kind is not parameter.KEYWORD_ONLY and len(arguments) == parameters.index(
                    parameter
                )
                arguments.append(text if positional else f"{parameter.name}={text}")
        yield f"{name}({', '.join(arguments)})"
        if not arguments:
            return


def _constructor_argument(
    parameter: inspect.Parameter, target: Target, module: ModuleType, small: dict[str, int]
) -> str | None:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) or parameter.default is not parameter.empty:
        return None
    config = configs.text_for(parameter, target, module)
    return config or configs.small_value(parameter.name, parameter.annotation, small)


def _calls(target: Target, module: ModuleType, prefix: str, call: Any, instance: Any) -> Iterator[Example]:
    queue = list(_combinations(call, instance))
    seen: set[str] = set()
    while queue and len(seen) < TRIES:
        combination = queue.pop(0)
        text = f"{prefix}({', '.join(_argument(name, value) for name, value in combination.items())})"
        if text in seen:
            continue
        seen.add(text)
        example = from_call(target, module, text)
        example.origin, example.declared = "synthesised", False

        def failed(error: BaseException, combination: dict[str, Any] = combination) -> None:
            queue[:0] = list(repairs.after(error, combination))

        example.failed = failed
        yield example


def _argument(name: str, value: Any) -> str:
    text = value.text() if isinstance(value, Tensor) else repr(value)
    return text if name.startswith("*") else f"{name}={text}"


def _combinations(call: Any, instance: Any) -> Iterator[dict[str, Any]]:
    """Arguments by name; a name that begins with `*` is passed by position."""
    function = instance.forward if call is instance and isinstance(instance, torch.nn.Module) else call
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    wanted = _wanted(parameters)
    shapes: list[Tensor] = from_layers(instance) if isinstance(instance, torch.nn.Module) else []
    shapes += [Tensor("float", shape) for shape in ANY_SHAPE]
    for shape in shapes:
        combination: dict[str, Any] = {}
        for parameter in wanted:
            keyword = parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty
            name = parameter.name if keyword else "*" + parameter.name
            combination[name] = _value(parameter, shape)
        yield combination


def _wanted(parameters: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """The parameters to give a value: those without default, or else the well-known inputs of a model."""
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    required = [p for p in named if p.default is p.empty]
    usual = [p for p in named if p.name in configs.USUAL_INPUTS]
    variadic = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    return required or configs.first_of_each_kind(usual) or named[:1] or variadic


def _value(parameter: inspect.Parameter, shape: Tensor) -> Any:
    return from_annotation(parameter.annotation, shape) or from_name(parameter.name, shape)
