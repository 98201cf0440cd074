"""Which modules' outputs reach a call that is kept: a loss is given what the model before it gives. Where the code that
is only read makes them unknown, `values.Output` stands for them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .values import UNKNOWN, Instance, Output, Scope, known

Value = Callable[[ast.expr, Scope], Any]

_SAME = frozenset("to cuda cpu detach float double half contiguous clone".split())
"""Methods of a tensor that give one of the same shape."""


def given(node: ast.expr, scope: Scope, value: Value, is_module: Callable[[Instance], bool]) -> Any:
    """The value of an expression, with outputs in the place of what is unknown of it."""

    def read(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            found = scope.outputs.get(node.id)
            return found if found is not None else value(node, scope)
        if isinstance(node, (ast.List, ast.Tuple)) and not any(isinstance(each, ast.Starred) for each in node.elts):
            items = [read(each) for each in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        if isinstance(node, ast.Dict) and None not in node.keys:
            return {value(k, scope): read(v) for k, v in zip(node.keys, node.values) if k is not None}  # noqa: B905
        if isinstance(node, ast.Subscript):
            return _part(read(node.value), value(node.slice, scope))
        if isinstance(node, ast.Attribute):
            whole = read(node.value) if isinstance(node.value, ast.Name) else UNKNOWN
            return _part(whole, node.attr) if isinstance(whole, Output) else value(node, scope)
        return called(node) if isinstance(node, ast.Call) else value(node, scope)

    def called(node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
            whole = read(node.func.value)
            return whole if isinstance(whole, Output) else value(node, scope)
        function = value(node.func, scope) if isinstance(node.func, (ast.Name, ast.Attribute)) else UNKNOWN
        return Output(function.cls) if isinstance(function, Instance) and is_module(function) else value(node, scope)

    return read(node)


def kept(target: ast.expr, found: Any, scope: Scope) -> None:
    """Keeps what a module gave by the names that it is bound to."""
    if isinstance(target, ast.Name) and holds(found):
        scope.outputs[target.id] = found
    elif isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in target.elts):
        for number, each in enumerate(target.elts):
            kept(each, _part(found, number), scope)


def _part(whole: Any, index: Any) -> Any:
    if isinstance(whole, Output) and known(index) and isinstance(index, (int, str)):
        return Output(whole.cls, (*whole.path, index))
    try:
        return whole[index] if isinstance(whole, (list, tuple, dict)) else UNKNOWN
    except (LookupError, TypeError):
        return UNKNOWN


def holds(value: Any) -> bool:
    """Whether a value is an output, or holds one."""
    if isinstance(value, (list, tuple)):
        return any(map(holds, value))
    return isinstance(value, Output) or (isinstance(value, dict) and any(map(holds, value.values())))


def filled(value: Any, made: Callable[[Output], Any]) -> Any:
    """The value with each output in it replaced."""
    if isinstance(value, Output):
        return made(value)
    if isinstance(value, (list, tuple)):
        return type(value)(filled(each, made) for each in value)
    return {name: filled(each, made) for name, each in value.items()} if isinstance(value, dict) else value
