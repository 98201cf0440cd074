"""What a JSON, YAML or TOML file of settings holds; a file that is larger than settings are is not read.

A short text of YAML may stand for gigabytes, as an alias stands for all that it names. Parts are therefore counted as
often as they are named, before anything is made of them.
"""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable
from typing import Any

from .values import UNKNOWN

ENDINGS = (".json", ".yaml", ".yml", ".toml")
LONGEST = 1 << 20
"""Bytes of a file that code names; of those that are looked for, smaller ones are settings."""
MOST_PARTS = 100_000


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
