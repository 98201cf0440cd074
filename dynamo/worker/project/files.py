"""The Python files of a project, notebooks among them, as text and as syntax trees. Nothing is imported."""

from __future__ import annotations

import ast
import functools
import json
import math
import os
import time
from collections.abc import Iterator

MOST_FILES = 500
LONGEST = 300_000
"""Characters."""
HIGHEST = 4
"""Folders above a package in which the project's root is looked for."""

_SKIPPED = frozenset({"node_modules", "site-packages", "venv", "build", "dist"})
_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", ".git")


def import_root(path: str) -> str:
    """The folder that a file's package is imported from."""
    folder = os.path.dirname(os.path.abspath(path))
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def root(path: str) -> str:
    """The folder of the project: the nearest one with a sign of it above a file's package, else the package's own."""
    start = folder = import_root(path)
    for _ in range(HIGHEST):
        if any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS):
            return folder
        folder = os.path.dirname(folder)
    return start


def walk(
    top: str, endings: tuple[str, ...] = (".py",), skipped: frozenset[str] = frozenset(), ends: float = math.inf
) -> Iterator[str]:
    """The paths of a folder's files, in the order of their names; those that are met before a time of the clock
    `time.monotonic`, as whoever asks may read each of them.
    """
    number = 0
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(n for n in folders if n not in _SKIPPED | skipped and not n.startswith((".", "_")))
        for name in sorted(names):
            if time.monotonic() >= ends:
                return
            if name.endswith(endings) and number < MOST_FILES:
                number += 1
                yield os.path.join(folder, name)
        if number >= MOST_FILES or time.monotonic() >= ends:
            return


def text_of(path: str) -> str:
    """A file's code; "" where it cannot be read. Lines of a notebook that are not Python are left out."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST)
        return text if not path.endswith(".ipynb") else _cells(text)
    except (OSError, ValueError):
        return ""


def _cells(text: str) -> str:
    cells = json.loads(text)
    parts = []
    for cell in cells.get("cells", ()) if isinstance(cells, dict) else ():
        source = "".join(cell.get("source", ()))
        if cell.get("cell_type") == "code" and not source.startswith("%%"):
            lines = ("" if line.lstrip().startswith(("%", "!", "?")) else line for line in source.splitlines())
            code = "\n".join(lines)
            parts.append(code if _parsed(code) is not None else "")
    return "\n".join(parts)


@functools.lru_cache(maxsize=256)
def tree_of(path: str) -> ast.Module | None:
    """The syntax tree of a file; None where it has none."""
    return _parsed(text_of(path))


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
