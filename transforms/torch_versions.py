"""With which versions of torch a rewrite was measured to hold: one table, asked before a mend is offered.

Measured means: the bodies of `tests/transforms/judged` that it answers, run before and after with that torch, in eager
mode and compiled, gave the same values, gradients, output and exceptions, and no break was left
(`docs/torch-versions.md`).
"""

from __future__ import annotations

import re

OLDEST, NEWEST = (2, 8), (2, 13)
"""The minor versions that are supported; a newer one is taken for the newest."""

MEASURED = (2, 10)
"""Mends were measured with 2.10, 2.12 and 2.13, and are refused with older versions."""

SINCE: dict[str, tuple[tuple[int, int], str]] = {
    "emit": ((2, 10), "torch cannot keep an output operator in its place in the graph before"),
    "hop_print": ((2, 10), "its print operator is not traced before"),
}
"""Rewrites that hold only from a version on, and why. What is not listed was measured from `MEASURED` on."""


def minor(version: str) -> tuple[int, int] | None:
    """(2, 13) for `2.13`, `2.13.0+cpu` and `2.13.0.dev20260401`; None for what is no version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def since(rewrite: str) -> tuple[int, int]:
    """The first minor version that a rewrite was measured to hold with."""
    return SINCE[rewrite][0] if rewrite in SINCE else MEASURED


def unmeasured(rewrite: str, version: str) -> str | None:
    """Why a mend is not offered with a version of torch; None where it is."""
    found, first = minor(version), since(rewrite)
    if found is None or found >= first:
        return None
    why = SINCE[rewrite][1] if rewrite in SINCE else "it was not measured with older ones"
    return "it holds from torch {}.{} on: {}; this is checked against {}.{}".format(*first, why, *found)
