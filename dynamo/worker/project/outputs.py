"""Which modules' outputs reach a call that is kept: a loss is given what the model before it gives. Where the code that
is only read makes them unknown, `values.Output` stands for them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from .values import UNKNOWN, Instance, Output, Scope, known

Value = Callable[[ast.expr, Scope], Any]

_MOVES = frozenset("to cuda cpu detach clone".split())
"""Methods of a tensor that give the same numbers."""
_COMPUTE = frozenset(
    "view reshape permute transpose squeeze unsqueeze flatten float mean sum max min softmax log_softmax sigmoid tanh"
    " exp t contiguous chunk split narrow select unbind item".split()
)
"""Methods that are called on what a run gave, where their arguments are known."""


def given(node: ast.expr, scope: Scope, value: Value, is_module: Callable[[Instance], bool]) -> Any:
    """The value of an expression, with outputs in the place of what is unknown of it."""

    def read(node: ast.expr) -> Any:
        if isinstance(node, ast.Name):
            found = scope.output(node.id)
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
        if isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES | _COMPUTE:
            whole = read(node.func.value)
            if not isinstance(whole, Output):
                return value(node, scope)
            args = [value(each, scope) for each in node.args]
            named = {k.arg: value(k.value, scope) for k in node.keywords if k.arg is not None}
            if node.func.attr in _MOVES:
                return whole
            return _part(whole, Done(node.func.attr, args, named)) if known([args, named]) else UNKNOWN
        is_place = isinstance(node.func, (ast.Name, ast.Attribute, ast.Subscript))
        function = value(node.func, scope) if is_place else UNKNOWN
        return Output(function.cls) if isinstance(function, Instance) and is_module(function) else value(node, scope)

    return read(node)


def kept(target: ast.expr, found: Any, scope: Scope) -> None:
    """Keeps what a module gave by the names that it is bound to."""
    if isinstance(target, ast.Name) and holds(found):
        scope.outputs[target.id] = found
    elif isinstance(target, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in target.elts):
        for number, each in enumerate(target.elts):
            kept(each, _part(found, number), scope)


def looped(target: ast.expr, over: ast.expr, scope: Scope, value: Value, is_module: Callable[[Instance], bool]) -> None:
    """What is looped over may be what a module gave: its parts are alike, and the first one is kept."""
    found = given(over, scope, value, is_module) if isinstance(over, (ast.Name, ast.Attribute, ast.Call)) else UNKNOWN
    if isinstance(found, Output):
        kept(target, _part(found, 0), scope)


class Done:
    """What is done to an output before it is handed on: a method that is called with known arguments."""

    def __init__(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.name = name
        self.args = args
        self.kwargs = kwargs

    def __repr__(self) -> str:
        return f"{self.name}({self.args}, {self.kwargs})"


def part_of(whole: Any, path: tuple[Any, ...]) -> Any:
    """The part of what a run gave that a path leads to."""
    for step in path:
        if isinstance(step, Done):
            whole = getattr(whole, step.name)(*step.args, **step.kwargs)
        else:
            whole = whole[step] if not isinstance(step, str) or isinstance(whole, dict) else getattr(whole, step)
    return whole


def _part(whole: Any, index: Any) -> Any:
    if isinstance(whole, Output) and known(index) and isinstance(index, (int, str, Done)):
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
