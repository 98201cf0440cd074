"""The cells of a notebook as the lines of a module: what is IPython's (`%magic`, `!command`, `name?`) becomes an
empty line, or `pass` in a block, where it keeps a cell from being Python; so does a cell in another language.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence

_ONLY_RUN = (ast.Expr, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Assert, ast.Delete, ast.Raise)
_IPYTHON = re.compile(r"\s*(?:[%!?]|[\w., ]+=\s*[%!](?!=)|[\w.]+\?{1,2}\s*$)")
#: cell magics whose cell is Python
_PYTHON = re.compile(r"%%(?:time|timeit|capture|prun|memit|mprun|graphmend|python3?|ipytest)\b")


def python_lines(lines: Sequence[str]) -> list[str] | None:
    """A cell's lines without what is not Python, as many as there were; None where the rest is not Python either."""
    if _is_python(lines):
        return list(lines)
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    given = list(lines)
    if lines[first].startswith("%%"):
        if not _PYTHON.match(lines[first]):
            return [""] * len(lines)
        given[first] = ""
    made = [_in_place(line) if _IPYTHON.match(line) else line for line in given]
    return made if _is_python(made) else None


def definitions_only(module: str) -> str:
    """What a notebook's module defines, without what only runs (loops, calls whose result is dropped): cells train and
    print, too. Lines stay where they are; a text that does not parse is given back."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse(module).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return module
    lines = module.split("\n")
    for node in body:
        if isinstance(node, _ONLY_RUN):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
    return "\n".join(lines)


def _is_python(lines: Sequence[str]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _in_place(line: str) -> str:
    """What stands for a line of IPython's: nothing, or a statement where a block may have no other."""
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass" if indent else ""
