"""Why a check, or one target of it, cannot go on: one line for the user."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable


class Unusable(Exception):
    """The message is shown as it is. `bare` is the same without what the checked code itself said, which may hold what
    nobody else is to read; it is the message where that holds nothing of the kind.
    """

    def __init__(self, message: str, bare: str | None = None) -> None:
        super().__init__(message)
        self.bare = message if bare is None else bare


def describe(error: BaseException, in_project: Callable[[str], bool] | None = None) -> str:
    """`ValueError: text (model.py:12)`: what was raised, and the innermost line of the user's that raised it."""
    text = " ".join(str(error).split())
    if isinstance(error, Unusable):
        return text
    if isinstance(error, SyntaxError) and error.filename:
        text = error.msg or text
    shown = text if len(text) <= 300 else text[:297] + "..."
    return f"{type(error).__name__}{': ' if shown else ''}{shown}{_place(error, in_project)}"


def bare(error: BaseException, in_project: Callable[[str], bool] | None = None) -> str:
    """The same without the text of the error: `ValueError (model.py:12)`."""
    if isinstance(error, Unusable):
        return error.bare
    return f"{type(error).__name__}{_place(error, in_project)}"


def _place(error: BaseException, in_project: Callable[[str], bool] | None) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({os.path.basename(error.filename)}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    mine = [f for f in frames if in_project is not None and in_project(f.filename)]
    return f" ({os.path.basename(mine[-1].filename)}:{mine[-1].lineno})" if mine else ""
