"""Which versions of torch a check knows, and what it says of others. Nothing of torch is needed to ask.

Local parts (`+cpu`, `+cu128`, `+rocm6.3`) and the dates of nightly builds do not count: the minor version decides.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

OLDEST = (2, 8)
NEWEST = (2, 13)
"""The minor versions that checks were measured with; see docs/torch-versions.md."""


def release(version: str) -> tuple[int, int] | None:
    """(2, 13) for `2.13.0`, `2.13.0+cu130` and `2.13.0.dev20260401`; None where a text starts with no version."""
    found = re.match(r"\s*v?(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def text(version: tuple[int, int]) -> str:
    return "{}.{}".format(*version)


def refusal(version: str) -> str | None:
    """Why no check is made with a version; None where one is."""
    found = release(version)
    if found is None or found >= OLDEST:
        return None
    return f"it is older than {text(OLDEST)}, the oldest whose graph breaks GraphMend can see"


def remark(version: str) -> str:
    """What a report has to say of the version that it was made with; empty where it was measured."""
    found = release(version)
    if found is None:
        return f"torch calls itself {version!r}, which is no version; checked as {text(NEWEST)}"
    return f"torch {text(found)} is newer than known, checked as {text(NEWEST)}" if found > NEWEST else ""


def hidden(imported: str, path: Iterable[str]) -> str:
    """A remark where another torch lies behind the one that is imported, whose file is given; else empty."""
    own = os.path.dirname(os.path.realpath(imported))
    for folder in path:
        place = os.path.join(folder or os.getcwd(), "torch")
        try:
            with open(os.path.join(place, "version.py"), encoding="utf-8") as file:
                stated = re.search(r"^__version__.*=\s*['\"]([^'\"]+)", file.read(), re.M)
        except (OSError, UnicodeDecodeError):
            continue
        if stated and os.path.realpath(place) != own:
            return f"torch {stated[1]} in {place} is not imported: checked with the one in {own}"
    return ""


def blind(version: str, reason: str) -> str:
    """The answer where what a check saw cannot be trusted."""
    return f"GraphMend cannot see the breaks of torch {version}: {reason}"
