"""The key of a model's server: read from a variable or a file, kept in memory, handed to nobody else."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from graphmend.cli.failures import UsageError


def read(file: Path | None, variable: str) -> str | None:
    """The key; None where there is none. The variable is taken out of the environment: what a check starts inherits it.

    Raises `UsageError` where a file can't be read, or is readable by others than its owner.
    """
    from_variable = os.environ.pop(variable, None)
    if file is None:
        return from_variable or None
    try:
        mode = file.stat().st_mode
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: the key cannot be read ({type(error).__name__})") from None
    if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{file}: others may read this key; chmod 600 it")
    if not text or len(text.splitlines()) != 1:
        raise UsageError(f"{file}: a key is one line")
    return text
