"""Constructor calls to try: arguments from annotations, from what the constructor does with them, and from their
names; configurations in a small size first, then in a less small one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch

from .. import project_classes
from ..discover import Target
from . import configs, source_reading
from .shapes import Call, Source, render
from .usage import Use

_WAYS: tuple[dict[str, int], ...] = ({}, {"dim": 8, "heads": 1}, {"dim": 64, "heads": 4})


_VARIADIC = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def texts(target: Target, module: ModuleType) -> Iterator[str]:
    """Source texts that make the object to call."""
    name = target.name.partition(".")[0]
    if target.kind != "class":
        yield name
        return
    constructor = _constructor(target.value)
    try:
        parameters = list(inspect.signature(constructor).parameters.values())[1:]
    except (TypeError, ValueError):
        parameters = []
    found = source_reading.uses(constructor, target.value, (), of_tensors=False)
    seen = set()
    for text in _each(name, parameters, found, target, module):
        if text not in seen:
            seen.add(text)
            yield text


def _constructor(value: type) -> Any:
    """The constructor that tells its parameters: one that hands on whatever it gets stands for its base's."""
    for base in value.__mro__:
        found = vars(base).get("__init__")
        code = getattr(found, "__code__", None)
        if code is not None and (code.co_argcount + code.co_kwonlyargcount > 1 or not code.co_flags & _VARIADIC):
            return found
    return value.__init__  # type: ignore[misc]


def _each(
    name: str, parameters: list[inspect.Parameter], found: dict[str, Use], target: Target, module: ModuleType
) -> Iterator[str]:
    small, *levels = configs.LEVELS
    for sizes in _WAYS:
        yield _call(name, parameters, found, target, module, sizes, small, {})
    for parameter in parameters:
        for other in configs.others(parameter, found.get(parameter.name, Use()), target, module):
            yield _call(name, parameters, found, target, module, {}, small, {parameter.name: other})
    for level in levels:
        yield _call(name, parameters, found, target, module, {}, level, {})


def _call(
    name: str,
    parameters: list[inspect.Parameter],
    found: dict[str, Use],
    target: Target,
    module: ModuleType,
    small: dict[str, int],
    level: str,
    given: dict[str, str],
) -> str:
    arguments: list[str] = []
    by_position = True
    for parameter in parameters:
        use = found.get(parameter.name, Use())
        text = given.get(parameter.name) or _argument(parameter, use, target, module, small, level)
        by_position = by_position and text is not None and parameter.kind is not parameter.KEYWORD_ONLY
        if text is not None:
            bare = by_position or parameter.kind is parameter.VAR_POSITIONAL
            arguments.append(text if bare else f"{parameter.name}={text}")
    return f"{name}({', '.join(arguments)})"


def _argument(
    parameter: inspect.Parameter, use: Use, target: Target, module: ModuleType, small: dict[str, int], level: str
) -> str | None:
    if parameter.kind is parameter.VAR_KEYWORD:
        return None
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"{small.get('dim', 16)}, {small.get('dim', 16)}" if use.is_sequence else None
    if parameter.default is not parameter.empty:
        return None
    text = configs.text_for(parameter, use, target, module, level)
    if text is None:
        made = _structure(parameter.name, parameter.annotation, use, target, module, small)
        text = None if made is None else render(made)
    return text or configs.small_value(parameter.name, parameter.annotation, small)


def _structure(
    name: str, annotation: Any, use: Use, target: Target | None, module: ModuleType, small: dict[str, int]
) -> Any:
    """What the constructor's own text asks for where it is no number: a mapping, a namespace, a list, a callable."""
    text = annotation if isinstance(annotation, str) else str(annotation)
    if re.search(r"torch\.device\b", text) or annotation == "device":
        return Source("torch.device('cpu')")
    if re.search(r"torch\.dtype\b", text):
        return Source("torch.float32")
    if isinstance(annotation, type) and annotation in (int, float, str, bool):
        return None
    if use.calls is not None:
        return _callable(name, use.calls, target, module)

    def inner(key: str, part: Use) -> Any:
        made = _structure(key, None, part, target, module, small)
        return made if made is not None else Source(configs.small_value(key, None, small))

    wanted = {key: part for key, part in use.keys.items() if key not in use.optional}
    if wanted:
        return {key: inner(key, part) for key, part in wanted.items()}
    if use.keys:
        return {}
    fields = {n: u for n, u in use.attributes.items() if n not in ("get", "items", "keys", "copy")}
    if fields:
        # what it is handed on to reads more of it, mostly under the same name
        more = project_classes.attributes_of(project_classes.text_of(module), name)
        every = {**{field: Use() for field in more}, **fields}
        return Call("SimpleNamespace", {field: inner(field, part) for field, part in every.items()})
    if use.is_sequence:
        item = Source(configs.small_value(name, None, small))
        return [item] * max(use.items, 2)
    return None


def _callable(name: str, arguments: int, target: Target | None, module: ModuleType) -> Source:
    """A class of the file that takes as many arguments, else a layer by the parameter's name."""
    for found, value in vars(module).items():
        own = isinstance(value, type) and issubclass(value, torch.nn.Module) and value.__module__ == module.__name__
        if own and (target is None or value is not target.value) and _takes(value, arguments):
            return Source(found)
    return Source("nn.ReLU" if "act" in name else "nn.LayerNorm" if "norm" in name else "nn.Identity()")


def _takes(value: type, arguments: int) -> bool:
    try:
        inspect.signature(value).bind(*[None] * arguments)
    except (TypeError, ValueError):
        return False
    return arguments > 0
