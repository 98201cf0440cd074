"""A second account of what broke, by none of our hooks: torch's public `graph_breaks` log, and Dynamo's own counters.

A report that holds less than this account must not be believed.
"""

from __future__ import annotations

import logging
import re

from torch._dynamo.utils import counters

_LOGGER = "__graph_breaks"
"""How the names of the loggers end that `TORCH_LOGS=graph_breaks` switches on."""
_BREAK = "Graph break"
"""How what is logged of each break begins; more is logged where Dynamo itself fails."""
_PLACE = re.compile(r"Graph break .*?in user code at (?P<file>.*):(?P<line>\d+)$", re.M)


class Witness(logging.Handler):
    """A context manager; `breaks` counts what was logged meanwhile, `first` says where that was."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.breaks = 0
        self.first = ""
        self._before = (0, 0)
        self._loggers: list[tuple[logging.Logger, int, bool]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not str(record.msg).startswith(_BREAK):
            return
        self.breaks += 1
        if self.breaks == 1:
            found = _PLACE.search(str(record.msg))
            self.first = f"{found['file']}:{found['line']}" if found else "a frame that runs in plain Python"

    def __enter__(self) -> Witness:
        self._before = _counted()
        for name in [name for name in logging.root.manager.loggerDict if name.endswith(_LOGGER)]:
            logger = logging.getLogger(name)
            self._loggers.append((logger, logger.level, logger.propagate))
            if not logger.isEnabledFor(logging.DEBUG):  # nobody asked for the log: it must not show up anywhere else
                logger.propagate = False
            logger.addHandler(self)
            logger.setLevel(logging.DEBUG)
        return self

    def __exit__(self, *_: object) -> None:
        while self._loggers:
            logger, level, propagate = self._loggers.pop()
            logger.removeHandler(self)
            logger.setLevel(level)
            logger.propagate = propagate

    def contradicts(self, breaks: int, accepted: int) -> str | None:
        """What speaks against a report of so many breaks, some of which Dynamo accepted; None where nothing does."""
        if self.breaks > breaks:
            where = f" (the first at {self.first})" if not breaks else ""
            return f"its graph_breaks log tells of {_breaks(self.breaks)}{where}, the hooks of {breaks or 'none'}"
        grown = (now - before for now, before in zip(_counted(), self._before, strict=True))
        if not accepted and max(grown) > 0:
            return "its counters tell of breaks behind which it went on, the hooks of none"
        return None


def _breaks(number: int) -> str:
    return f"{number} break{'' if number == 1 else 's'}"


def _counted() -> tuple[int, int]:
    """How many breaks were accepted, and how many functions made that go on behind one, since Dynamo was imported."""
    return sum(counters["graph_break"].values()), sum(counters["resumes"].values())
