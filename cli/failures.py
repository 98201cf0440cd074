"""How failures are told: one line on standard error that says what and where."""

from __future__ import annotations

import os
import sys
import traceback

from graphmend.cli.control_characters import printable


class UsageError(Exception):
    """The command cannot do what it was asked to; the message is one line."""


def complain(line: str) -> None:
    """One line on standard error."""
    print(f"graphmend: {printable(' '.join(line.split()))}", file=sys.stderr)


def internal_error(error: BaseException) -> str:
    """One line for a failure of GraphMend itself: what, and where in it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    text = " ".join(str(error).split())
    said = f": {text}" if text else ""
    return f"internal error: {type(error).__name__}{said}{where} (GRAPHMEND_DEBUG=1 shows more)"
