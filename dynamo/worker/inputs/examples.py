"""Inputs that the user declared, in the order of trust: configuration, `example_inputs()`, the `get_inputs()` pair,
a comment.
"""

from __future__ import annotations

import ast
import linecache
import re
from argparse import Namespace
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch

from ..discover import Target
from ..errors import Unusable, bare, describe
from ..project import classes as project_classes

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


class Example:
    """How to make a target's instance and its arguments. Each call makes them anew; the caller seeds the random
    generators.

    `origin` says where it comes from, `text` is shown to the user. `of_owner`: another module's run gives the
    arguments, and only such a run makes them again.
    """

    def __init__(
        self,
        origin: str,
        text: str,
        build: Callable[[], Any],
        inputs: Callable[[], list[Arguments]],
        declared: bool = True,
        of_owner: bool = False,
    ) -> None:
        self.origin = origin
        self.text = text
        self.build = build
        self.inputs = inputs
        self.declared = declared
        self.of_owner = of_owner
        self.failed: Callable[[BaseException], None] = lambda error: None
        """Told why an eager run failed; a maker of examples may learn from it."""


_COMMENT = re.compile(r"#\s*graphmend:\s*example\s+(.*)$")


def as_arguments(value: Any) -> Arguments:
    """What an expression stands for: a dict is keywords, a tuple or list is positions, anything else is the one
    argument.
    """
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return (), dict(value)
    if isinstance(value, (tuple, list)):
        if len(value) == 2 and isinstance(value[0], tuple) and isinstance(value[1], dict):
            return value[0], value[1]
        return tuple(value), {}
    return (value,), {}


def several(value: Any) -> list[Arguments]:
    """A list of argument tuples (or dicts), one for each call; anything else is one call's arguments."""
    if isinstance(value, list) and value and all(isinstance(item, (tuple, dict)) for item in value):
        return [as_arguments(item) for item in value]
    return [as_arguments(value)]


def make(target: Target, arguments: Arguments) -> Any:
    """The object to call for a target: classes are instantiated."""
    if target.kind != "class":
        return target.value
    return target.value(*arguments[0], **arguments[1])


def namespace(module: ModuleType) -> dict[str, Any]:
    import functools
    import math

    import torch.nn.functional as functional

    usual: dict[str, Any] = {"torch": torch, "nn": torch.nn, "F": functional, "math": math, "functools": functools}
    usual["SimpleNamespace"] = Namespace  # which answers `"dropout" in args`, too
    return {**usual, **vars(module)}


def evaluate(source: str, names: dict[str, Any], what: str) -> Any:
    code = source.strip()
    try:
        return _value(compile(code, f"<{what}>", "eval"), dict(names))
    except Exception as error:
        fails = f"{what} cannot be evaluated: {source.strip()[:120]}"
        raise Unusable(f"{fails}: {describe(error)}", f"{fails}: {bare(error)}") from error


def _value(code: Any, names: dict[str, Any]) -> Any:
    """The value of an expression; a configuration class that the file does not import is looked for beside it."""
    while True:
        try:
            return eval(code, names)
        except NameError as error:
            missing = getattr(error, "name", None)
            found = project_classes.named(names["__file__"], missing) if missing and names.get("__file__") else None
            if found is None or missing is None or missing in names:
                raise
            names[missing] = found


def declared(target: Target, module: ModuleType, entries: list[dict[str, str]]) -> Iterator[Example]:
    """Every declaration that speaks about a target, best first."""
    yield from _configured(target, module, entries)
    if target.method is None:
        yield from _example_inputs(target, module)
        yield from _input_pair(target, module)
    yield from _comment(target, module)


def speaks_about(entry: dict[str, str], target: Target) -> bool:
    """Entries name targets as `file.py:Name`, `package.module:Name` or `Name`; the caller chose those of this file."""
    return entry["target"].rpartition(":")[2] == target.name


def _configured(target: Target, module: ModuleType, entries: list[dict[str, str]]) -> Iterator[Example]:
    for entry in entries:
        init, inputs = entry.get("init") or "", entry.get("inputs") or ""
        if not inputs or not speaks_about(entry, target):
            continue
        names = namespace(module)

        def build(init: str = init, names: dict[str, Any] = names) -> Any:
            if target.kind != "class" or not init:
                return make(target, ((), {}))
            value = evaluate(init, names, "init of " + target.name)
            return value if isinstance(value, target.value) else make(target, as_arguments(value))

        def call(inputs: str = inputs, names: dict[str, Any] = names) -> list[Arguments]:
            return several(evaluate(inputs, names, "inputs of " + target.name))

        method = f".{target.method}" if target.method else ""
        yield Example("configuration", f"{shown_init(target, init)}{method}{shown_arguments(inputs)}", build, call)


def shown_arguments(text: str) -> str:
    """An expression that `as_arguments` understands, as it would stand in a call."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return f"({text})"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args:
        return f"({', '.join(ast.unparse(keyword) for keyword in node.keywords)})"
    if isinstance(node, ast.Tuple):
        return f"({', '.join(ast.unparse(item) for item in node.elts)})"
    return f"({text.strip()})"


def shown_init(target: Target, init: str) -> str:
    """What makes a target's object: `init` is such an expression already, or stands for the class's arguments."""
    name = target.name.partition(".")[0]
    if target.kind != "class" or re.match(rf"(\w+\.)*{re.escape(name)}\b", init):
        return init if target.kind == "class" else name
    return f"{name}{shown_arguments(init) if init else '()'}"


def _example_inputs(target: Target, module: ModuleType) -> Iterator[Example]:
    function = getattr(module, "example_inputs", None)
    if callable(function):
        init = getattr(module, "get_init_inputs", None)

        def build() -> Any:
            return make(target, as_arguments(init()) if callable(init) else ((), {}))

        yield Example("example_inputs()", "example_inputs()", build, lambda: several(function()))


def _input_pair(target: Target, module: ModuleType) -> Iterator[Example]:
    inputs, init = getattr(module, "get_inputs", None), getattr(module, "get_init_inputs", None)
    if callable(inputs):

        def build() -> Any:
            return make(target, as_arguments(init()) if callable(init) else ((), {}))

        text = "%s(*get_inputs())" % (
            f"{target.name}(*get_init_inputs())" if callable(init) and target.kind == "class" else target.name
        )
        yield Example("get_inputs()", text, build, lambda: [as_arguments(inputs())])


def _comment(target: Target, module: ModuleType) -> Iterator[Example]:
    """Comments stand directly above the definition or its decorators."""
    path = module.__file__ or ""
    line = target.line - 1
    while line > 0:
        text = linecache.getline(path, line).strip()
        found = _COMMENT.match(text)
        if found:
            yield from_call(target, module, found.group(1))
        elif not text.startswith(("#", "@")):
            return
        line -= 1


def from_call(target: Target, module: ModuleType, text: str) -> Example:
    """`Net(8)(torch.randn(2, 8))`: the outer call's function makes the object, its arguments are the inputs."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise Unusable(f"the example comment of {target.name} is no expression: {text}") from error
    if not isinstance(call, ast.Call):
        raise Unusable(f"the example comment of {target.name} is no call: {text}")
    # The arguments are evaluated by calling a function that returns them.
    call_function = ast.get_source_segment(text, call.func) or target.name
    collect = ast.Expression(
        ast.Call(func=ast.Name(id="__collect__", ctx=ast.Load()), args=call.args, keywords=call.keywords)
    )
    code = compile(ast.fix_missing_locations(collect), f"<example of {target.name}>", "eval")

    def inputs() -> list[Arguments]:
        names = dict(namespace(module), __collect__=lambda *args, **kwargs: (args, kwargs))
        return [eval(code, names)]

    def build() -> Any:
        if target.kind != "class":
            return target.value
        value = evaluate(call_function, namespace(module), "example of " + target.name)
        return value.__self__ if target.method is not None and hasattr(value, "__self__") else value

    return Example("comment", text, build, inputs)
