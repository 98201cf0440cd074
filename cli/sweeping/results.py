"""The file of results: a line of JSON for each target, appended as it ends, by one sweep at a time.

A line is written whole or not at all. What a killed sweep left half written is cut off when the file is opened again.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

from graphmend.cli.failures import UsageError
from graphmend.cli.sweeping.outcome import OUTCOMES, Model
from graphmend.workspace.files import reason

Line = dict[str, Any]


#: what is read of a line, and of each of its models
_FIELDS: dict[str, Any] = {
    "target": str,
    "outcome": str,
    "reason": (str, type(None)),
    "problem": (str, type(None)),
    "models": list,
    "mends": dict,
    "report": (dict, type(None)),
    "options": dict,
    "graphmend": str,
    "run": dict,
}
_OF_A_MODEL = frozenset(Model._fields)
_PARTS = {
    "mends": {"made", "filenames"},
    "report": {"torch", "targets", "after"},
    "options": {"mended", "unsafe", "batches"},
    "run": {"node", "seconds", "cpu_seconds", "memory"},
}


def _is_complete(line: Line) -> bool:
    """Whether all is there that the reports read. Raises what a wrong kind of data raises."""
    return (
        all(isinstance(line[name], kinds) for name, kinds in _FIELDS.items())
        and all(line[name] is None or keys <= line[name].keys() for name, keys in _PARTS.items())
        and all(model.keys() >= _OF_A_MODEL and model["outcome"] in OUTCOMES for model in line["models"])
        and line["outcome"] in OUTCOMES
    )


class NotWritten(Exception):
    """A line could not be written; the file holds the lines before it. The message is one line."""


class Results:
    """An open file of results. `lines` has the newest line of each target."""

    def __init__(self, path: Path) -> None:
        """Raises `UsageError` where the file cannot be opened, is another sweep's at the moment, or holds something
        else.
        """
        self.path = path
        self.repaired = 0
        """Bytes of a half-written line that were cut off."""
        if path.exists() and not path.is_file():
            raise UsageError(f"{path} is not a regular file")
        self._new = not path.exists()
        try:
            self._file: BinaryIO = open(path, "a+b", buffering=0)  # noqa: SIM115  # held, and locked, until `close`
        except OSError as error:
            raise UsageError(f"{path} cannot be opened: {reason(error)}") from None
        self._locked = False
        try:
            self._lock()
            self._locked = True
            self.lines = self._read()
        except BaseException:
            self.close()
            raise

    def add(self, line: Line) -> None:
        """Appends a line. Raises `NotWritten`; the file is then as it was."""
        data = json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n"
        end = self._file.seek(0, os.SEEK_END)
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) or 0 :]
            os.fsync(self._file.fileno())
        except OSError as error:
            self._cut(end)
            raise NotWritten(f"{self.path} cannot be written: {reason(error)}") from None
        except BaseException:  # an interrupt in the middle of a line, or behind a whole one, which stays
            if self._file.seek(0, os.SEEK_END) == end + len(data):
                self.lines[line["target"]] = line
            else:
                self._cut(end)
            raise
        self.lines[line["target"]] = line

    def close(self) -> None:
        """Lets others write the file. One that was made here and has no line in the end is removed."""
        if self._file.closed:
            return
        empty = self._locked and self._new and os.fstat(self._file.fileno()).st_size == 0
        if empty and sys.platform != "win32":  # as long as it is locked; Windows removes no open file
            self.path.unlink(missing_ok=True)
        self._file.close()
        if empty and sys.platform == "win32":
            with contextlib.suppress(OSError):
                self.path.unlink()

    def _cut(self, end: int) -> None:
        self._file.truncate(end)
        self._file.seek(end)

    def _lock(self) -> None:
        """The operating system gives the lock back, however this process ends."""
        try:
            if sys.platform == "win32":
                import msvcrt

                self._file.seek(1 << 40)  # far behind the text, which others may read
                msvcrt.locking(self._file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(self._file.fileno()).st_nlink == 0:
                raise BlockingIOError  # it was removed by the sweep that held it
        except (BlockingIOError, PermissionError):
            raise UsageError(
                f"another sweep is writing {self.path}: wait for its end, or name another --output"
            ) from None
        except OSError as error:
            raise UsageError(f"{self.path} cannot be locked: {reason(error)}; name an --output elsewhere") from None

    def _read(self) -> dict[str, Line]:
        self._file.seek(0)
        found: dict[str, Line] = {}
        whole = 0
        for number, data in enumerate(self._file, 1):
            if not data.endswith(b"\n"):
                self._repair(number, data, whole)
                break
            found.update([self._entry(number, data)] if data.strip() else [])
            whole += len(data)
        return found

    def _repair(self, number: int, data: bytes, whole: int) -> None:
        """Cuts off the beginning of a line; refuses what never was one."""
        beginning = b'{"target":'
        if data[: len(beginning)] != beginning[: len(data)]:
            raise self._not_ours(number)
        self.repaired = len(data)
        self._cut(whole)

    def _entry(self, number: int, data: bytes) -> tuple[str, Line]:
        try:
            line = json.loads(data)
            if _is_complete(line):
                return line["target"], line
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            pass
        raise self._not_ours(number)

    def _not_ours(self, number: int) -> UsageError:
        return UsageError(f"{self.path}:{number} is no line of a sweep; name another --output")
