"""The key of a model's server: read from a variable or a file, kept in memory, handed to nobody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path


class KeyProblem(Exception):
    """A key can't be used; the message is one line that holds nothing of it."""


def from_variable(name: str) -> str | None:
    """The key that a variable holds; None where there is none.

    The variable is taken out of the environment: the processes that run the user's code would inherit it.
    """
    return os.environ.pop(name, None) or None


def from_file(file: Path) -> str:
    """The key that stands in a file, in one line. Raises `KeyProblem`, also where others may read the file."""
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise KeyProblem(f"{file}: the key cannot be read ({type(error).__name__})") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise KeyProblem(f"{file}: others may read this key; chmod 600 it")
    if not text or len(text.splitlines()) != 1:
        raise KeyProblem(f"{file}: a key is one line")
    return text
