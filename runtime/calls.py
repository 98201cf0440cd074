"""How an output function is called so that what it finds as its caller is the user's line, not ours.

Loggers, warnings and whatever else looks at the stack (adapters, `findCaller` of the user's own, other packages) find a
frame with the name, the file, the line and the globals of the line that the output stands in. It is made for the call.
"""

from __future__ import annotations

import ast
import logging
import re
import sys
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_METHODS = ("debug", "info", "warning", "warn", "error", "critical", "fatal", "log")
_FUNCTIONS = {
    getattr(owner, name)
    for owner in (logging.Logger, logging.LoggerAdapter, logging)
    for name in _METHODS
    if hasattr(owner, name)
}
"""The functions of `logging` that write a record, and hand on a `stacklevel`."""

OWN_FRAMES = 3
"""Frames between the user's line and the caller that is made for an output function: `emit`, `call` and that one."""

_RESUMED = re.compile(r"torch_dynamo_resume_in_(.+)_at_\d+$")
_CALL = "lambda rest, function, args, kwargs: "
_CALL += "rest[0](rest[1:], function, args, kwargs) if rest else function(*args, **kwargs)"


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of the user's program, as a traceback names it."""

    filename: str
    line: int
    function: str
    scope: dict[str, Any] = field(repr=False)
    """The globals of its module."""


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Calls `function` for `emit`, which was called from the user's line."""
    if isinstance(function, types.BuiltinFunctionType) and function is not warnings.warn:
        function(*args, **kwargs)  # it has no way to ask
        return
    here = sys._getframe(2)
    resumed = _RESUMED.match(here.f_code.co_name)
    name = resumed.group(1) if resumed else here.f_code.co_name
    frame = Frame(here.f_code.co_filename, here.f_lineno, name, here.f_globals)
    if _level(function, args, kwargs) > 1:
        args, kwargs = _raised(function, args, kwargs)
    _caller(frame)((), function, args, kwargs)


def call_from(
    frames: tuple[Frame, ...], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Calls `function` for a graph, which has no frames; `frames` are those that were traced, the user's line first.

    Past the compiled function there are none; its own stands for the rest.
    """
    missing = max(_level(function, args, kwargs) - len(frames), 0)
    first, *rest = [_caller(frame) for frame in reversed([*frames, *[frames[-1]] * missing])]
    first(tuple(rest), function, args, kwargs)


# Stack levels


def _level(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Which of the frames above the call is to be named; 1 where nothing is said."""
    level: Any = kwargs.get("stacklevel", 1)
    if function is warnings.warn and len(args) > 2:
        level = args[2]
    return level if isinstance(level, int) else 1


def _raised(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments with a stack level that goes past our frames."""
    if function is warnings.warn and len(args) > 2:
        return (*args[:2], args[2] + OWN_FRAMES, *args[3:]), kwargs
    plain = getattr(function, "__func__", function)
    if function is warnings.warn or (isinstance(plain, types.FunctionType) and plain in _FUNCTIONS):
        return args, {**kwargs, "stacklevel": kwargs["stacklevel"] + OWN_FRAMES}
    return args, kwargs


# Frames


def _caller(frame: Frame) -> Callable[..., Any]:
    """A function whose frame is as good as the given one. It calls the first of `rest`, else the output function."""
    return types.FunctionType(_code(frame.filename, frame.line, frame.function), frame.scope)


@lru_cache(maxsize=1024)
def _code(filename: str, line: int, function: str) -> types.CodeType:
    tree = ast.parse(_CALL, mode="eval")
    ast.increment_lineno(tree, line - 1)
    module = compile(tree, filename, "eval", dont_inherit=True)
    code = next(constant for constant in module.co_consts if isinstance(constant, types.CodeType))
    more: dict[str, Any] = {"co_qualname": function} if sys.version_info >= (3, 11) else {}
    code = code.replace(co_name=function, **more)
    for action in made:
        action(code)
    return code


made: list[Callable[[types.CodeType], None]] = []
"""What is done to the code of each frame that is made."""
