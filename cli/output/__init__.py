"""The output formats of `check`: one file each, with `write(run, out)`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from graphmend.cli.checking.file_report import CheckRun

FORMATS = ("full", "concise", "json", "json-lines", "github", "gitlab", "sarif", "junit")

#: formats that show mends
WITH_MENDS = frozenset({"full", "json", "sarif"})

#: formats that show the edits of mends
WITH_EDITS = frozenset({"sarif"})

#: formats that people read: a summary ends them
FOR_PEOPLE = frozenset({"full", "concise"})


def writer(name: str) -> Callable[[CheckRun, TextIO], None]:
    """The function that writes a run in a format. Only that format's module is imported."""
    module = importlib.import_module(f"graphmend.cli.output.{name.replace('-', '_')}")
    write: Callable[[CheckRun, TextIO], None] = module.write
    return write
