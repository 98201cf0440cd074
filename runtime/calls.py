"""How an output function is called so that what it reports as its place is the user's line, not ours."""

from __future__ import annotations

import logging
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "fatal": logging.CRITICAL,
    "log": None,
}
"""The functions of `logging` that write a record, and its level; None where the level is the first argument."""

_FUNCTIONS: dict[types.FunctionType, int | None] = {
    getattr(owner, name): level
    for owner in (logging.Logger, logging)
    for name, level in _LEVELS.items()
    if hasattr(owner, name)
}

OWN_FRAMES = 2
"""Frames of ours between the user's line and the output function: `emit` and `call`."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A line of the user's program that was being traced, as a traceback names it."""

    filename: str
    line: int
    function: str
    scope: dict[str, Any] = field(repr=False)
    """The globals of its module."""


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Calls `function` for `emit`, which was called from the user's line."""
    if function is warnings.warn and len(args) > 2:
        args = (*args[:2], args[2] + OWN_FRAMES, *args[3:])
    elif function is warnings.warn or _logger(function) is not None:
        kwargs = {**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + OWN_FRAMES}
    function(*args, **kwargs)


def call_from(
    frames: tuple[Frame, ...], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Calls `function` for a graph, which has no frames; `frames` are those that were traced, the user's line first."""
    if function is warnings.warn and "skip_file_prefixes" not in kwargs:
        _warn(frames, *args, **kwargs)
    elif (logger := _logger(function)) is not None and kwargs.keys() <= {"msg", "extra", "stacklevel"}:
        if not hasattr(function, "__self__") and not logger.handlers:
            logging.basicConfig()  # as the functions of the module do
        _log(frames, logger, _FUNCTIONS[_python(function)], args, kwargs)
    else:
        function(*args, **kwargs)


def _python(function: Callable[..., Any]) -> Any:
    """The function itself, of a method too."""
    return getattr(function, "__func__", function)


def _logger(function: Callable[..., Any]) -> logging.Logger | None:
    """The logger that an output function belongs to, if it finds its caller as `logging` does."""
    plain = _python(function)
    if not isinstance(plain, types.FunctionType) or plain not in _FUNCTIONS:
        return None
    logger = getattr(function, "__self__", logging.root)
    return logger if type(logger)._log is logging.Logger._log else None


def _at(frames: tuple[Frame, ...], stacklevel: int) -> Frame:
    """The frame that a stack level names. Past the compiled function there is none; its own stands for the rest."""
    return frames[min(max(stacklevel, 1), len(frames)) - 1]


def _warn(
    frames: tuple[Frame, ...], message: Any, category: Any = None, stacklevel: int = 1, source: Any = None
) -> None:
    frame = _at(frames, stacklevel)
    warnings.warn_explicit(
        message,
        category or (type(message) if isinstance(message, Warning) else UserWarning),
        frame.filename,
        frame.line,
        module=frame.scope.get("__name__", "<unknown>"),
        registry=frame.scope.setdefault("__warningregistry__", {}),  # where `warnings.warn` keeps what it showed once
        source=source,
    )


def _log(
    frames: tuple[Frame, ...], logger: logging.Logger, level: int | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """What `Logger._log` does once the caller is known."""
    if level is None:
        level, *rest = args
        args = tuple(rest)
    if logger.isEnabledFor(level):
        message, *values = (kwargs["msg"],) if "msg" in kwargs else args
        frame = _at(frames, kwargs.get("stacklevel", 1))
        extra = kwargs.get("extra")
        place = frame.filename, frame.line
        logger.handle(
            logger.makeRecord(logger.name, level, *place, message, tuple(values), None, frame.function, extra)
        )
