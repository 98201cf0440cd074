"""What a call writes: to the descriptors 1 and 2, as warnings, and as records of logging, whether shown or not."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

from .reach import lasting

TEXT_KEPT = 1 << 20
RECORDS_KEPT = 1000


class Output:
    """Filled at the end."""

    def __init__(self) -> None:
        self.text = ""
        self.records: list[str] = []

    def record(self, made: logging.LogRecord) -> None:
        if len(self.records) < RECORDS_KEPT and not made.name.startswith("torch."):
            try:
                text = made.getMessage()
            except Exception:
                text = str(made.msg)
            self.records.append(lasting(f"{made.levelname} {made.name}: {text}"))


@contextlib.contextmanager
def captured() -> Iterator[Output]:
    """Prints, logging, warnings, and what C code writes meanwhile."""
    output = Output()
    with tempfile.TemporaryFile() as file:
        _flush()
        formatted, factory = warnings.formatwarning, logging.getLogRecordFactory()
        kept = os.dup(1), os.dup(2)
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)

        def make(*args: Any, **keywords: Any) -> logging.LogRecord:
            made = factory(*args, **keywords)
            output.record(made)
            return made

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("always")
                warnings.formatwarning = _short
                logging.setLogRecordFactory(make)
                yield output
        finally:
            logging.setLogRecordFactory(factory)
            warnings.formatwarning = formatted
            _flush()
            for number, descriptor in zip((1, 2), kept):  # noqa: B905
                os.dup2(descriptor, number)
                os.close(descriptor)
            file.seek(0)
            output.text = lasting(file.read(TEXT_KEPT).decode("utf-8", "replace"))


def _short(message: Any, category: Any, *_: Any, **__: Any) -> str:
    """A warning without the line that it came from."""
    return f"{category.__name__}: {message}\n"


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


_CACHED = type(functools.lru_cache(lambda: None))
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_PACKAGES = ("site-packages", "dist-packages")


class _Module:
    """A module that may keep something, and its caches when it had so many names."""

    def __init__(self, names: dict[str, Any], installed: bool) -> None:
        self.names, self.installed = names, installed
        self.known, self.caches = -1, []  # type: ignore[var-annotated]

    def forget(self) -> None:
        if self.known != len(self.names) or not self.installed:
            self.caches = [value for value in list(self.names.values()) if isinstance(value, _CACHED)]
            self.known = len(self.names)
        for cache in self.caches:
            cache.cache_clear()


_modules: dict[int, list[_Module]] = {}
"""Those that may keep something, by the number of all that there were."""


def forget_cached() -> None:
    """Empties what modules keep from call to call, as it is before the first one.

    A `warning_once`, an `lru_cache` of a module that is not torch's or Python's, then speaks again; `re` compiles its
    patterns anew, at which some versions of torch break the graph. Called before each of some hundred runs, so that
    what is installed is looked through again only where it has more names than before.
    """
    re.purge()
    if len(sys.modules) not in _modules:
        _modules.clear()
        _modules[len(sys.modules)] = _of_program()
    for module in _modules[len(sys.modules)]:
        module.forget()


def _of_program() -> list[_Module]:
    """The modules that are not torch's or Python's."""
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not file or name.partition(".")[0] in ("torch", "sympy", "_graphmend_worker"):
            continue
        is_installed = any(folder in file for folder in _PACKAGES)
        if is_installed or not file.startswith(_LIBRARY):
            found.append(_Module(vars(module), is_installed))
    return found
