"""The file of results: a line of JSON for each target, appended as it ends, by one sweep at a time.

A line is written whole or not at all. What a killed sweep left half written is cut off when the file is opened again.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

from graphmend.cli.failures import UsageError
from graphmend.workspace.files import reason

Line = dict[str, Any]


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
        try:
            self._file: BinaryIO = open(path, "a+b", buffering=0)  # noqa: SIM115  # held, and locked, until `close`
        except OSError as error:
            raise UsageError(f"{path} cannot be opened: {reason(error)}") from None
        try:
            self._lock()
            self.lines = self._read()
        except BaseException:
            self._file.close()
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
        except BaseException:  # an interrupt in the middle of a line
            self._cut(end)
            raise
        self.lines[line["target"]] = line

    def close(self) -> None:
        self._file.close()

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
            return str(line["target"]), {**line, "outcome": line["outcome"], "run": line["run"]}
        except (ValueError, KeyError, TypeError):
            raise self._not_ours(number) from None

    def _not_ours(self, number: int) -> UsageError:
        return UsageError(f"{self.path}:{number} is no line of a sweep; name another --output")
