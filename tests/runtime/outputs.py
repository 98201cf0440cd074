"""What programs under test write to: loggers that tell the place of a record, and a class that writes lines."""

from __future__ import annotations

import logging
from typing import Any


class Lines(logging.Handler):
    """Prints records with the place that they report."""

    def emit(self, record: logging.LogRecord) -> None:
        print(record.name, record.levelname, record.lineno, record.funcName, self.format(record))


def printing(name: str) -> logging.Logger:
    """A logger of its own that prints."""
    made = logging.getLogger(f"outputs.{name}")
    made.propagate = False
    made.setLevel(logging.INFO)
    made.handlers = [Lines()]
    return made


class Writer:
    """An output class as tqdm is one."""

    prefix = "line"

    @classmethod
    def write(cls, text: str, file: Any = None) -> None:
        print(text, file=file)

    def line(self, *values: Any) -> None:
        print(self.prefix, *values)
