"""What was measured already is not measured again: a run that was ended goes on where it was.

Each step of a run is kept as a small file, outside of the repository, beside the environments. Its name says what
the step depends on: the build of torch, the request, and the texts of all files that have a part in the answer.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from bench.versions.environments import ROOT, folder

ROOMS = ("analysis", "transforms", "workspace", "dynamo", "runtime", "importer", "cli", "server", "model")

#: written by the runs themselves
_RESULTS = {"held.json"}
_KINDS = {".py", ".json", ".txt", ".ini", ".toml"}


class Build(NamedTuple):
    """A torch: its version with the local part, and the folder that it is installed in."""

    version: str
    place: str


again = False
"""Whether what was kept is measured anew."""


def kept(python: str, request: Any, files: Iterable[Path], measure: Callable[[], Any]) -> Any:
    """What `measure` answers, as JSON has it; what it answered before, where nothing changed that it depends on."""
    name = hashlib.sha256(json.dumps([build(python), request, digest(tuple(files))]).encode()).hexdigest()[:32]
    place = folder() / "progress" / f"{name}.json"
    if not again and place.is_file():
        return json.loads(place.read_text("utf-8"))
    answer = json.dumps(measure())
    place.parent.mkdir(parents=True, exist_ok=True)
    written = place.with_suffix(f".{os.getpid()}")
    written.write_text(answer, encoding="utf-8")
    written.replace(place)
    return json.loads(answer)


@cache
def build(python: str) -> Build:
    """Which torch an interpreter has."""
    code = "import torch; print(torch.__version__, torch.__file__, sep='\\n')"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    version, place = done.stdout.splitlines()[-2:]
    return Build(version, str(Path(place).parents[1]))


@cache
def digest(places: tuple[Path, ...]) -> str:
    """One number for the texts of files, and of all files below folders."""
    found = hashlib.sha256()
    for place in sorted(set(places)):
        for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if path.suffix in _KINDS and path.name not in _RESULTS and path.is_file():
                found.update(f"{path.relative_to(place.parent)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()


def rooms(*more: str) -> tuple[Path, ...]:
    """Every room, and other folders or files of the repository."""
    return tuple(ROOT / name for name in (*ROOMS, *more))
