"""The definition of a function that exists: its syntax, the names of its parameters, the names around it."""

from __future__ import annotations

import ast
import inspect
import textwrap
from typing import Any

import torch


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


def name_of_another_form(node: ast.Assign, around: dict[str, Any]) -> str | None:
    """`cfg` of `cfg = Config(**cfg)`, which is the same settings in another form; None of any other statement."""
    made = node.value
    if len(node.targets) != 1 or not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name):
        return None
    given = [*made.args, *(keyword.value for keyword in made.keywords if keyword.arg is None)]
    maker = around.get(made.func.id)
    settings = isinstance(maker, type) and not issubclass(maker, torch.nn.Module)
    if not settings or len(made.args) + len(made.keywords) != 1:
        return None
    names = [each.id for each in (node.targets[0], *given) if isinstance(each, ast.Name)]
    return names[0] if len(names) == 2 and names[0] == names[1] else None
