"""With which versions of torch a rewrite was measured to hold: asked before a mend is offered.

`held.json` says it, written by `make versions`: by minor version and rewrite, how many tests that mend with it, run
what came out and hold it against the original passed with that torch, in eager mode and compiled, and how many there
are. A rewrite holds with a version where all of them passed. The newest version is the one that the tests always run
with: a rewrite that the data does not name yet holds with it, and is measured with no other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

OLDEST, NEWEST = (2, 8), (2, 13)
"""The minor versions that are supported; a newer one is taken for the newest."""

DATA = Path(__file__).with_name("held.json")

WHY = {
    "emit": "torch cannot keep an output operator in its place in the graph before",
    "conditional_output": "torch cannot keep an output operator in its place in the graph before",
    "hop_print": "its print operator takes values by name alone before",
}
"""Why a rewrite does not hold with an older torch, where that is known."""

Version = tuple[int, int]


def minor(version: str) -> Version | None:
    """(2, 13) for `2.13`, `2.13.0+cpu` and `2.13.0.dev20260401`; None for what is no version."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def text(version: Version) -> str:
    return "{}.{}".format(*version)


@lru_cache(maxsize=1)
def measured() -> Mapping[Version, Mapping[str, tuple[int, int]]]:
    """By version, oldest first, and rewrite: how many tests passed, and how many there are."""
    data = json.loads(DATA.read_text("utf-8"))
    found = {minor(version): {name: (of[0], of[1]) for name, of in rows.items()} for version, rows in data.items()}
    return {version: found[version] for version in sorted(v for v in found if v is not None)}


def held(rewrite: str) -> tuple[Version, ...]:
    """The versions with which a rewrite was measured to hold, oldest first."""
    rows = {NEWEST: (1, 1)} | {version: of[rewrite] for version, of in measured().items() if rewrite in of}
    return tuple(sorted(version for version, (passed, tests) in rows.items() if passed == tests))


def stated(rewrite: str) -> str:
    """Those versions in words: `measured from torch 2.10 on`."""
    versions = held(rewrite)
    if not versions:
        return "measured with no torch"
    known = sorted(version for version in {*measured(), NEWEST} if version >= versions[0])
    if tuple(known) == versions:
        return f"measured from torch {text(versions[0])} on"
    *others, last = map(text, versions)
    return f"measured with torch {', '.join(others)}{' and ' if others else ''}{last}"


def unmeasured(rewrite: str, version: str) -> str | None:
    """Why a mend is not offered with a version of torch; None where it is."""
    found, versions = minor(version), held(rewrite)
    if found is None or min(found, NEWEST) in versions:
        return None
    why = WHY.get(rewrite) if versions and found < versions[0] else None
    return f"{stated(rewrite)}{f': {why}' if why else ''}; this is checked against {text(found)}"
