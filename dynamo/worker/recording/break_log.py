"""The public `graph_breaks` log, kept as text, for versions of torch without the internals that the recorder wants."""

from __future__ import annotations

import logging

from torch._logging._internal import set_logs


class BreakLog(logging.Handler):
    """A context manager; `text` holds what torch wrote meanwhile."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.text = ""
        self._loggers: list[logging.Logger] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage() + "\n\n"

    def __enter__(self) -> BreakLog:
        set_logs(graph_breaks=True)
        names = [name for name in logging.root.manager.loggerDict if name.endswith("__graph_breaks")]
        self._loggers = [logging.getLogger(name) for name in names]
        for logger in self._loggers:
            logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        for logger in self._loggers:
            logger.removeHandler(self)
        set_logs()
