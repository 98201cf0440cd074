"""How an output function is called so that what it reports as its place is the user's line, not ours."""

from __future__ import annotations

import logging
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
_LOGGER_METHODS = {
    getattr(logging.Logger, name): level for name, level in _LEVELS.items() if hasattr(logging.Logger, name)
}
_LOGGING_FUNCTIONS = {getattr(logging, name): level for name, level in _LEVELS.items() if hasattr(logging, name)}

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
    if function is warnings.warn:
        if len(args) > 2:
            args = (*args[:2], args[2] + OWN_FRAMES, *args[3:])
        else:
            kwargs = {**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + OWN_FRAMES}
    elif function in _LOGGING_FUNCTIONS or getattr(function, "__func__", None) in _LOGGER_METHODS:
        kwargs = {**kwargs, "stacklevel": kwargs.get("stacklevel", 1) + OWN_FRAMES}
    function(*args, **kwargs)


def call_from(
    frames: tuple[Frame, ...], function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Calls `function` for a graph, which has no frames; `frames` are those that were traced, the user's line first."""
    if function is warnings.warn:
        _warn(frames, *args, **kwargs)
    elif function in _LOGGING_FUNCTIONS:
        if not logging.root.handlers:
            logging.basicConfig()  # as the functions of the module do
        _log(frames, logging.root, _LOGGING_FUNCTIONS[function], args, kwargs)
    elif getattr(function, "__func__", None) in _LOGGER_METHODS:
        _log(frames, function.__self__, _LOGGER_METHODS[function.__func__], args, kwargs)  # type: ignore[attr-defined]
    else:
        function(*args, **kwargs)


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
        message, *values = args
        frame = _at(frames, kwargs.get("stacklevel", 1))
        logger.handle(
            logger.makeRecord(
                logger.name,
                level,
                frame.filename,
                frame.line,
                message,
                tuple(values),
                None,
                frame.function,
                kwargs.get("extra"),
            )
        )
