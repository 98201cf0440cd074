"""Which lines of the user's files ran, in an eager run; and which files are the user's."""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any


class Project:
    """The user's files: those under a root, except installed packages and the standard library (unless a root lies
    in them).
    """

    def __init__(self, roots: list[str]) -> None:
        self.roots = [os.path.realpath(root) + os.sep for root in roots]
        installed = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
        self.installed = [os.path.realpath(path) + os.sep for path in installed]
        self.contains = lru_cache(maxsize=None)(self._contains)

    def _contains(self, path: str) -> bool:
        if path.startswith("<"):
            return False
        path = os.path.realpath(path)
        root = max((r for r in self.roots if path.startswith(r)), key=len, default=None)
        if root is None:
            return False
        inside = path[len(root) - 1 :]
        if "/site-packages/" in inside.replace(os.sep, "/") or "/dist-packages/" in inside.replace(os.sep, "/"):
            return False
        return not any(path.startswith(i) and not root.startswith(i) for i in self.installed)


Step = Any
"""(file, first line of the function, offset of an instruction, offset of the one that ran next), where they differ by
more than one instruction."""


class LineTracer:
    """A context manager; `lines` holds the lines that ran, `steps` which instruction followed which: both sides of
    an `if` without `else`, of a conditional expression, of `and` and `or`.
    """

    def __init__(self, wanted: Callable[[str], bool]) -> None:
        self.wanted = wanted
        self.lines: dict[str, set[int]] = {}
        self.steps: set[Step] = set()

    def _call(self, frame: Any, event: str, argument: Any) -> Any:
        path = frame.f_code.co_filename
        if not self.wanted(path):
            return None
        seen = self.lines.setdefault(path, set())
        steps, first, last = self.steps, frame.f_code.co_firstlineno, -1
        frame.f_trace_opcodes = True

        def local(frame: Any, event: str, argument: Any) -> Any:
            nonlocal last
            if event == "opcode":
                if frame.f_lasti != last + 2:  # the common way, on to the next instruction, shows no branch
                    steps.add((path, first, last, frame.f_lasti))
                last = frame.f_lasti
            elif event == "line":
                seen.add(frame.f_lineno)
            return local

        return local

    def __enter__(self) -> LineTracer:
        self._kept = sys.gettrace()
        threading.settrace(self._call)
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._kept)
        threading.settrace(None)


def ranges(lines: set[int]) -> list[list[int]]:
    """Line numbers as inclusive ranges."""
    out: list[list[int]] = []
    for line in sorted(lines):
        if out and line == out[-1][1] + 1:
            out[-1][1] = line
        else:
            out.append([line, line])
    return out
