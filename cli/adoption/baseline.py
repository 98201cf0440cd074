"""A baseline: the findings that a project lives with for now, so that a check reports new ones only.

Entries are keyed by rule, function and normalised text, never by line, and counted: moved code stays known, a copy is
new. A finding that moved to another file is known too, if the file it stood in was checked and lacks it, or is gone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from graphmend.cli.failures import UsageError
from graphmend.workspace import files

#: raised when older versions of GraphMend could not read what is written
FORMAT = 1

#: what `check` knows, and what `verify` does
FINDINGS = "findings"
PARTS = (FINDINGS, "breaks")

#: keys of findings, counted, by the file that they stand in
Known = dict[str, Counter[str]]


def entry(key: str) -> str:
    """A finding's key as a baseline counts it: without the number that tells like findings of a function apart."""
    return key.partition("-")[0]


def load(path: Path, part: str = FINDINGS) -> Known:
    """The findings that a baseline file knows; file names are relative to its folder there, and whole here."""
    document, folder = _read(path), path.absolute().parent
    try:
        return {str(folder / name): _counted(keys) for name, keys in document.get(part, {}).items()}
    except (TypeError, ValueError, AttributeError):
        raise UsageError(f"{path}: the baseline is damaged; --write-baseline makes a new one") from None


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(files.read(path, math.inf).text)
    except files.FileProblem as problem:
        raise UsageError(f"{path}: the baseline cannot be read: {problem}") from None
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: the baseline is not JSON (line {error.lineno}): {error.msg}") from None
    version = document.get("graphmend-baseline") if isinstance(document, dict) else None
    if not isinstance(version, int):
        raise UsageError(f"{path}: is not a baseline of graphmend; --write-baseline makes one")
    if version > FORMAT:
        raise UsageError(f"{path}: the baseline was written by a newer graphmend (format {version}, known {FORMAT})")
    assert isinstance(document, dict)
    if not any(isinstance(document.get(part), dict) for part in PARTS):
        raise UsageError(f"{path}: the baseline is damaged; --write-baseline makes a new one")
    return document


def _counted(keys: Mapping[str, int]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for key, count in keys.items():
        counts[entry(str(key))] += int(count)
    return counts


def save(path: Path, found: Mapping[str, Iterable[str]], kept: Known | None = None, part: str = FINDINGS) -> int:
    """Write a part of a baseline: keys by file; `kept` holds those of files that were not checked. Returns how many."""
    folder = path.absolute().parent
    counts = {**(kept or {}), **{name: Counter(map(entry, keys)) for name, keys in found.items()}}
    others = {name: value for name, value in _read(path).items() if name in PARTS} if path.exists() else {}
    findings = {_relative(name, folder): dict(sorted(keys.items())) for name, keys in sorted(counts.items()) if keys}
    text = json.dumps({"graphmend-baseline": FORMAT, **others, part: findings}, indent=1, ensure_ascii=False)
    try:
        files.replace(path, (text + "\n").encode())
    except files.FileProblem as problem:
        raise UsageError(f"{path}: {problem}") from None
    return sum(sum(keys.values()) for keys in counts.values())


def moved(known: Known, found: Mapping[str, Iterable[str]]) -> Known:
    """`known`, with entries handed to the checked file where they are now, if they left the one where they were.

    `found` holds the keys of every checked file, those included that the checks of others found in it.
    Files that were not checked and still exist keep their entries.
    """
    now = {name: Counter(map(entry, keys)) for name, keys in found.items()}
    result = {name: Counter(keys) for name, keys in known.items()}
    homeless: Counter[str] = Counter()
    for name, keys in result.items():
        if name in now or not Path(name).exists():
            left = keys - now.get(name, Counter())
            homeless += left
            keys -= left
    for name, keys in now.items():
        arrived = (keys - result.get(name, Counter())) & homeless
        homeless -= arrived
        if arrived:
            result[name] = result.get(name, Counter()) + arrived
    return result


def _relative(name: str, folder: Path) -> str:
    try:
        return Path(name).relative_to(folder).as_posix()
    except ValueError:
        return name
