"""How far a long run has come, on one line of standard error that is wiped when it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TextIO, TypeVar

T = TypeVar("T")

#: runs that end sooner show nothing
_PATIENCE = 1.0
_INTERVAL = 0.1


def watched(steps: Iterable[T], total: int, out: TextIO | None = None) -> Iterator[T]:
    """The same steps; while they pass, `out` shows their number, if it is a terminal."""
    out = out or sys.stderr
    if not out.isatty():
        yield from steps
        return
    start = time.monotonic()
    told = start + _PATIENCE
    shown = False
    try:
        for done, step in enumerate(steps, 1):
            yield step
            now = time.monotonic()
            if now >= told:
                told, shown = now + _INTERVAL, True
                out.write(f"\r\x1b[KChecked {done} of {total} files ({now - start:.0f} s)")
                out.flush()
    finally:
        if shown:
            out.write("\r\x1b[K")
            out.flush()
