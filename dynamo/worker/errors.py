"""Why a check, or one target of it, cannot go on: one line for the user."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


class Unusable(Exception):
    """The message is shown as it is."""


def describe(error: BaseException, in_project: Callable[[str], bool] | None = None) -> str:
    """`ValueError: text (model.py:12)`: what was raised, and the innermost line of the user's that raised it."""
    text = " ".join(str(error).split())
    if isinstance(error, Unusable):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{os.path.basename(error.filename)}:{error.lineno}"
        text = error.msg or text
    else:
        mine = [f for f in frames if in_project is not None and in_project(f.filename)]
        where = f"{os.path.basename(mine[-1].filename)}:{mine[-1].lineno}" if mine else ""
    shown = text if len(text) <= 300 else text[:297] + "..."
    return "{}{}{}".format(type(error).__name__, ": " + shown if shown else "", f" ({where})" if where else "")
