"""The files of settings of a project: which there are, and which of their mappings has the keys that code reads."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

from . import data_files, files
from .values import UNKNOWN

MOST_FILES = 40
LARGEST = 200_000
"""Bytes of a file of settings; what is larger is data."""

_OF_TOOLS = re.compile(
    r"^(package(-lock)?|tsconfig|pyproject|mkdocs|environment|conda\w*|docker-compose\w*|meta|action|\..*)\.\w+$"
)
_OF_MODELS = re.compile(r"conf|cfg|hparam|param|setting|option|model|arch", re.IGNORECASE)


def of(root: str, endings: tuple[str, ...] = data_files.ENDINGS) -> list[str]:
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
    found = (data_files.read(path, resize) for path in of(root, endings))
    return next((data for data in found if isinstance(data, dict) and data), UNKNOWN)


def with_keys(
    path: str, fits: Callable[[dict[str, Any]], bool], resize: Callable[[int], int]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The mappings that fit, at any depth of a project's files of settings, each with the name of its file."""
    root = files.root(path)
    for each in of(root):
        for mapping in _mappings(data_files.read(each, resize)):
            if fits(mapping):
                yield os.path.relpath(each, root), mapping


def _mappings(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from _mappings(inner)
