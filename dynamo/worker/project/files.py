"""The Python code of a project, that of notebooks and Markdown files among it, as text and as syntax trees. Nothing is
imported.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import json
import os
import re
import textwrap
import time
from collections.abc import Iterator

MOST_FILES = 500
MOST_PAGES = 500
"""Markdown files: they come after the code, and take no room from it."""
LONGEST = 300_000
"""Characters."""
HIGHEST = 4
"""Folders above a package in which the project's root is looked for."""
HIGHEST_SCRIPTS = 2
"""The same where only scripts tell; of so many in a folder."""
MOST_SCRIPTS = 40

WITH_CODE = (".py", ".ipynb", ".md")

_PAGES = ".md"
_SKIPPED = frozenset({"node_modules", "site-packages", "venv", "build", "dist"})
_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", ".git")


def import_root(path: str) -> str:
    """The folder that a file's package is imported from."""
    folder = os.path.dirname(os.path.abspath(path))
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def root(path: str) -> str:
    """The folder of the project: the nearest one with a sign of it above a file's package, else one whose own scripts
    name the folder that leads there (`from models.net import Net`, `sys.path.append("core")`), else the package's own,
    or the folder above where a page stands in that one alone.
    """
    start = folder = import_root(path)
    for _ in range(HIGHEST):
        if any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS):
            return folder
        folder = os.path.dirname(folder)
    return _speaking_of(start) or next(filter(_has_page, (start, os.path.dirname(start))), start)


def _has_page(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in ("README.md", "readme.md", "Readme.md"))


def _speaking_of(start: str) -> str | None:
    folder = start
    for _ in range(HIGHEST_SCRIPTS):
        folder, name = os.path.split(folder)
        if not name:
            return None
        word = re.compile(rf"\b{re.escape(name)}\b")
        with contextlib.suppress(OSError):
            scripts = sorted(each for each in os.listdir(folder) if each.endswith(".py"))[:MOST_SCRIPTS]
            if any(word.search(text_of(os.path.join(folder, each))) for each in scripts):
                return folder
    return None


WAITING = 3
"""How many times as long as its time of the processor some work may take in all: a busy machine lends little of it."""


class Limit:
    """The time that some work may take, in seconds of the processor."""

    def __init__(self, seconds: float) -> None:
        self._ends, self._ends_in_all = time.process_time() + seconds, time.monotonic() + WAITING * seconds

    @property
    def is_over(self) -> bool:
        return time.process_time() >= self._ends or time.monotonic() >= self._ends_in_all

    def part(self, share: float) -> Limit:
        """A share of what is left of it."""
        left = min(self._ends - time.process_time(), (self._ends_in_all - time.monotonic()) / WAITING)
        return Limit(max(left, 0.0) * share)


def walk(
    top: str, endings: tuple[str, ...] = (".py",), skipped: frozenset[str] = frozenset(), limit: Limit | None = None
) -> Iterator[str]:
    """The paths of a folder's files, in the order of their names, pages last; those that are met in time, as whoever
    asks may read each of them.
    """
    number = 0
    pages: list[str] = []
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(n for n in folders if n not in _SKIPPED | skipped and not n.startswith((".", "_")))
        for name in sorted(names):
            if limit is not None and limit.is_over:
                return
            if not name.endswith(endings):
                continue
            if name.endswith(_PAGES):
                pages.append(os.path.join(folder, name))
            elif number < MOST_FILES:
                number += 1
                yield os.path.join(folder, name)
        if number >= MOST_FILES:
            break
    for page in pages[:MOST_PAGES]:
        if limit is not None and limit.is_over:
            return
        yield page


def text_of(path: str) -> str:
    """A file's code; "" where it cannot be read. Of a notebook and of Markdown it is the parts that are Python."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST)
        if path.endswith(".ipynb"):
            return _joined(_cells(text))
        return _joined(_blocks(text)) if path.endswith(".md") else text
    except (OSError, ValueError):
        return ""


def _joined(parts: Iterator[str]) -> str:
    """Parts as one text, without those that do not parse, and without the lines that only Jupyter understands."""
    found = []
    for part in parts:
        lines = ("" if line.lstrip().startswith(("%", "!", "?")) else line for line in part.splitlines())
        code = "\n".join(lines)
        found.append(code if _parsed(code) is not None else "")
    return "\n".join(found)


def _cells(text: str) -> Iterator[str]:
    cells = json.loads(text)
    for cell in cells.get("cells", ()) if isinstance(cells, dict) else ():
        source = "".join(cell.get("source", ()))
        if cell.get("cell_type") == "code" and not source.startswith("%%"):
            yield source


_BLOCK = re.compile(r"^( *)```+ *(?:python|py)\w*\b[^\n]*\n(.*?)^\1```", re.MULTILINE | re.DOTALL | re.IGNORECASE)
_PROMPT = re.compile(r"^(?:>>>|\.\.\.) ?", re.MULTILINE)


def _blocks(text: str) -> Iterator[str]:
    """The blocks of Markdown that say that they are Python; of a session at a prompt, what was typed."""
    for found in _BLOCK.finditer(text):
        code = textwrap.dedent(found[2])
        if _PROMPT.match(code):
            code = "\n".join(_PROMPT.sub("", line) for line in code.splitlines() if _PROMPT.match(line))
        yield code


@functools.lru_cache(maxsize=256)
def tree_of(path: str) -> ast.Module | None:
    """The syntax tree of a file; None where it has none."""
    return _parsed(text_of(path))


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
