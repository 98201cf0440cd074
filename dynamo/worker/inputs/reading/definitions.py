"""The definition of a function that exists: its syntax, the names of its parameters, the names around it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any


def definition_of(function: Any) -> Any:
    """The syntax of a function; None where there is no source."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    node = tree.body[0] if tree.body else None
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def globals_of(function: Any) -> dict[str, Any]:
    return getattr(inspect.unwrap(getattr(function, "__func__", function)), "__globals__", {})


def parameters_of(definition: Any) -> list[str]:
    """By position first, `*args` and `**kwargs` last."""
    given = definition.args
    several = [a.arg for a in (given.vararg, given.kwarg) if a is not None]
    return [a.arg for a in (*given.posonlyargs, *given.args, *given.kwonlyargs)] + several
