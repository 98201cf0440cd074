"""Constructor arguments out of a project's files of settings that no script hands on: the mapping that has what the
class reads of a parameter, or the class's own parameters as keys.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from ..project import data_files
from . import from_project
from .reading.usage import Use

FEWEST = 2
"""Keys that tell one mapping from another."""


def suggestions(
    module: ModuleType, parameters: list[inspect.Parameter], found: dict[str, Use], resize: Callable[[int], int]
) -> Iterator[from_project.Suggestion]:
    path = getattr(module, "__file__", None)
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if path is None or not required:
        return
    source = from_project.Writer(module, shallow=True)
    for parameter in required:
        use = found.get(parameter.name, Use())
        if len(_wanted(use)) >= FEWEST:
            for where, mapping in data_files.with_keys(path, lambda m, use=use: _has(m, use), resize):  # type: ignore[misc]
                yield _suggested(source, {parameter.name: mapping}, found, where)
    names = {p.name for p in required}
    if len(names) >= FEWEST:
        every = {p.name for p in parameters}
        for where, mapping in data_files.with_keys(path, lambda m: names <= set(m), resize):
            yield _suggested(source, {n: v for n, v in mapping.items() if n in every}, found, where)


def _suggested(
    source: from_project.Writer, given: dict[str, Any], found: dict[str, Use], where: str
) -> from_project.Suggestion:
    return from_project.Suggestion(source.texts(given, found), [], where)


def _wanted(use: Use) -> dict[str, Use]:
    """What is read of a mapping or namespace, and is no method of it."""
    read = {name: part for name, part in use.attributes.items() if not hasattr(dict, name) and part.calls is None}
    return {**read, **{name: part for name, part in use.keys.items() if name not in use.optional}}


def _has(mapping: dict[str, Any], use: Use) -> bool:
    wanted = _wanted(use)
    for name, part in wanted.items():
        inner = mapping.get(name)
        if name not in mapping or (_wanted(part) and not (isinstance(inner, dict) and _has(inner, part))):
            return False
    return bool(wanted)
