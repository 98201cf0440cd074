"""How formats name files."""

from __future__ import annotations

import os
from pathlib import Path


def relative(path: str) -> str:
    """A path as it is typed where the command runs; the whole path outside of that folder."""
    try:
        return str(Path(path).relative_to(os.getcwd()))
    except ValueError:
        return path


def posix(path: str) -> str:
    """`relative` with forward slashes, as services on other machines want it."""
    return Path(relative(path)).as_posix()
