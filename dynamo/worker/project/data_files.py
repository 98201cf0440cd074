"""The files of settings of a project, JSON, YAML or TOML: which there are, and what each holds; one that is larger than
settings are is not read.

A short text of YAML may stand for gigabytes, as an alias stands for all that it names. Parts are therefore counted as
often as they are named, before anything is made of them.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from . import files
from .values import UNKNOWN

ENDINGS = (".json", ".yaml", ".yml", ".toml")
LONGEST = 1 << 20
"""Bytes of a file that code names; of those that are looked for, smaller ones are settings."""
MOST_PARTS = 100_000
MOST_FILES = 40
LARGEST = 200_000
"""Bytes of a file of settings; what is larger is data."""

_OF_TOOLS = re.compile(
    r"^(package(-lock)?|tsconfig|pyproject|mkdocs|environment|conda\w*|docker-compose\w*|meta|action|\..*)\.\w+$"
)
_OF_MODELS = re.compile(r"conf|cfg|hparam|param|setting|option|model|arch", re.IGNORECASE)


def read(path: str, resize: Callable[[int], int]) -> Any:
    """What a file holds, its integers through `resize`; unknown where it cannot be read or is too large."""
    if not path.endswith(ENDINGS):
        return UNKNOWN
    try:
        if os.path.getsize(path) > LONGEST:
            return UNKNOWN
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if path.endswith(".json"):
            return _resized(json.loads(text), resize)
        if path.endswith(".toml"):
            return _resized(importlib.import_module("tomllib").loads(text), resize)
        return _resized(_yaml(text), resize)
    except Exception:
        return UNKNOWN


def _yaml(text: str) -> Any:
    loader = importlib.import_module("yaml").SafeLoader(text)
    root = loader.get_single_node()
    if root is None:
        return None
    _count(root)
    return loader.construct_document(root)


def _count(root: Any) -> None:
    """Raises where a node of YAML has too many nodes below it; one that is below itself has."""
    waiting, number = [root], 1
    while waiting:
        value = waiting.pop().value
        if not isinstance(value, list):
            continue
        inner = [node for part in value for node in (part if isinstance(part, tuple) else (part,))]
        number += len(inner)
        if number > MOST_PARTS:
            raise ValueError("too many parts")
        waiting += inner


def _resized(value: Any, resize: Callable[[int], int]) -> Any:
    if isinstance(value, dict):
        return {key: _resized(item, resize) for key, item in value.items()}
    if isinstance(value, list):
        return [_resized(item, resize) for item in value]
    return resize(value) if type(value) is int else value


def merge(into: dict[Any, Any], more: Any) -> None:
    """Puts settings over others, mapping by mapping."""
    for key, value in more.items() if isinstance(more, dict) else ():
        inner = into.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            merge(inner, value)
        else:
            into[key] = value


_NAMES = re.compile(r"\$\{([\w.]+)\}")
MOST_CHOSEN = 24


def composed(path: str, resize: Callable[[int], int]) -> Any:
    """A file's settings with those that its `defaults` choose: `- model: unet` is `model/unet.yaml`, as `model`."""
    found = read(path, resize)
    chosen = found.pop("defaults", None) if isinstance(found, dict) else None
    if not isinstance(chosen, list):
        return found
    whole: dict[Any, Any] = {}
    for group, name in _chosen(chosen):
        where = os.path.join(os.path.dirname(path), group, name if name.endswith(ENDINGS) else name + ".yaml")
        part = read(where, resize)
        if isinstance(part, dict):
            part.pop("defaults", None)
            for each in reversed(group.split("/") if group else []):
                part = {each: part}
            merge(whole, part)
    merge(whole, found)
    return _resolved(whole, whole)


def _chosen(defaults: list[Any]) -> list[tuple[str, str]]:
    """Group and name of each file of a list of defaults; those of no group are beside the one that chooses."""
    found: list[tuple[str, str]] = []
    for each in defaults[:MOST_CHOSEN]:
        items = each.items() if isinstance(each, dict) else [("", each)]
        found += [(re.sub(r"^(override|optional) +", "", str(g)), n) for g, n in items if isinstance(n, str)]
    return [(group, name) for group, name in found if name != "_self_" and not group.startswith("hydra")]


def _resolved(value: Any, whole: dict[Any, Any]) -> Any:
    """The settings with the values of others that they name: `${data.size}`."""
    if isinstance(value, dict):
        return {key: _resolved(item, whole) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, whole) for item in value]
    named = _NAMES.fullmatch(value) if isinstance(value, str) else None
    for part in named[1].split(".") if named is not None else ():
        whole = whole.get(part, UNKNOWN) if isinstance(whole, dict) else UNKNOWN
    return value if named is None else whole


def settings_of(root: str, endings: tuple[str, ...] = ENDINGS) -> list[str]:
    """The paths of the files in a project, those first that are named or kept as settings."""
    found = itertools.islice((p for p in files.walk(root, endings) if _is_settings(p)), MOST_FILES)
    return sorted(found, key=lambda path: (_OF_MODELS.search(os.path.relpath(path, root)) is None, path))


def _is_settings(path: str) -> bool:
    try:
        return _OF_TOOLS.match(os.path.basename(path)) is None and os.path.getsize(path) <= LARGEST
    except OSError:
        return False


def likeliest(root: str, endings: tuple[str, ...], resize: Callable[[int], int]) -> Any:
    """What a program reads that is told on its command line which settings to use; unknown where there are none."""
    found = (read(path, resize) for path in settings_of(root, endings))
    return next((data for data in found if isinstance(data, dict) and data), UNKNOWN)


def of_name(root: str, name: str, resize: Callable[[int], int]) -> Any:
    """What the project's file of settings holds whose path ends in a name; unknown where none or several do."""
    ending = os.sep + os.path.normpath(name)
    found = [path for path in settings_of(root) if path.endswith(ending)]
    return read(found[0], resize) if len(found) == 1 else UNKNOWN


def with_keys(
    path: str, fits: Callable[[dict[str, Any]], bool], resize: Callable[[int], int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The mappings that fit, at any depth of a project's files of settings, each with the name of its file."""
    root = files.root(path)
    for each in settings_of(root):
        for mapping in _mappings(read(each, resize)):
            if fits(mapping):
                yield os.path.relpath(each, root), mapping


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _mappings(inner)
