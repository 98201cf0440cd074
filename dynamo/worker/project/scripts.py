"""What a file finds where it is run, and does not where it is imported: the folder of its project, from which scripts
are started, and names that only a script's main part defines.
"""

from __future__ import annotations

import ast
import os
import sys
from types import CodeType, ModuleType
from typing import Any

from . import files
from .expressions import TooLong
from .statements import Statements
from .values import known

_PLAIN = (bool, int, float, str, tuple, list, dict)


def reach(path: str) -> None:
    """Lets a file import what lies in the folder of its project, and in `src` below it, as programs there do."""
    root = files.root(path)
    sys.path += [each for each in (root, os.path.join(root, "src")) if os.path.isdir(each) and each not in sys.path]


def complete(module: ModuleType) -> None:
    """Gives an imported module the plain values that its main part sets and its functions read."""
    path = getattr(module, "__file__", None)
    tree = files.tree_of(path) if path else None
    wanted = _set_by_main(tree) - set(vars(module)) if tree is not None else set()
    wanted &= _read(compile(tree, str(path), "exec")) if wanted and tree is not None else set()
    if not wanted:
        return
    machine = Statements(lambda number: number, lambda cls: False, files.root(str(path)))
    machine.steps = 20_000
    try:
        scope = machine.module(str(path))
    except (TooLong, RecursionError):
        return
    for name in sorted(wanted):
        value: Any = scope.get(name)
        if isinstance(value, _PLAIN) and known(value):
            setattr(module, name, value)


def _set_by_main(tree: ast.Module) -> set[str]:
    main = [n for n in tree.body if isinstance(n, ast.If) and "__name__" in ast.unparse(n.test)]
    names = (n for part in main for n in ast.walk(part) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    return {name.id for name in names}


def _read(code: CodeType) -> set[str]:
    """The global names that functions in a module's code read."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set().union(*({*each.co_names, *_read(each)} for each in inner)) if inner else set()
