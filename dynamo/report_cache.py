"""What checks gave, used again while every file that took part still has the same text: reports that outlive the
process, kept by what was asked, and the run that further texts are compared with.

Reads and writes the user's cache folder. A report on another device is another entry; one of another torch, of other
packages or of another GraphMend is out of date.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request, package_root
from graphmend.workspace import files, interpreter
from graphmend.workspace.cache import Cache, cache_folder, digest, own_stamp, packages_stamp


class Store:
    """Raw answers of the worker, by request."""

    def __init__(self, folder: Path | None = None) -> None:
        self._cache = Cache(folder or cache_folder() / "verify")

    def keep(self, request: Request, torch: object, answer: Mapping[str, Any]) -> None:
        """Stores an answer with the texts that it depends on."""
        paths = {request.path}
        for target in answer["result"].get("targets", ()):
            paths.update(target.get("executed", ()), target.get("traced", ()))
        texts = {path: _text_digest(path, request.texts) for path in sorted(paths)}
        self._cache.store(_name(request), _stamp(request, torch), {"texts": texts, "answer": dict(answer)})

    def find(self, request: Request, torch: object) -> Mapping[str, Any] | None:
        """The answer to the same request on the same texts; None where there is none."""
        entry = self._cache.load(_name(request), _stamp(request, torch))
        if not isinstance(entry, dict):
            return None
        same = all(_text_digest(path, request.texts) == known for path, known in entry["texts"].items())
        return dict(entry["answer"]) if same else None


@dataclass(frozen=True, slots=True)
class KeptRun:
    """A check, and the folder that holds what it computed: several answers of a model are compared with it."""

    request: Request
    surroundings: str | None
    """What it may depend on besides the request, as it was in front of the run; None where that is not known."""
    report: Report
    folder: tempfile.TemporaryDirectory[str]

    def is_of(self, request: Request, torch: object) -> bool:
        """Would the same check be made again, with the same torch, the same packages and the same files around?"""
        same = self.request == request and self.surroundings is not None
        return same and self.surroundings == surroundings(request, torch)


def surroundings(request: Request, torch: object) -> str | None:
    """What a check may depend on besides its request: torch, packages, and the files of the project, of any kind, by
    their sizes and times. None where these are too many.
    """
    folders = {
        package_root(request.path),
        *request.roots,
        request.cwd or os.path.dirname(os.path.abspath(request.path)),
    }
    seen: list[str] = []
    for folder in sorted(folders):
        for place, inner, names in os.walk(folder):
            inner[:] = [name for name in inner if not name.startswith(".") and name != "__pycache__"]
            for path in (os.path.join(place, name) for name in names):
                with contextlib.suppress(OSError):
                    about = os.stat(path)
                    seen.append(f"{path}\0{about.st_size}\0{about.st_mtime_ns}")
            if len(seen) > _MOST_FILES:
                return None
    return digest(_stamp(request, torch), *sorted(seen))


#: files of a project whose times are looked at, some milliseconds
_MOST_FILES = 5000


def _name(request: Request) -> str:
    declared = (f"{d.target}\0{d.init}\0{d.inputs}" for d in request.declared if request.concerns(d))
    return digest(request.path, request.interpreter, request.device, *request.names, "declared", *declared)


def _stamp(request: Request, torch: object) -> str:
    """What a report depends on besides the texts: what made it, and what the checked code may import."""
    asked = interpreter.at(Path(request.interpreter))
    return digest(own_stamp(), str(torch), packages_stamp(asked) if asked is not None else "")


def _text_digest(path: str, texts: Mapping[str, str]) -> str:
    """A digest of the text of a file, or of the unsaved one; "" where there is none."""
    text = texts.get(path)
    if text is None:
        try:
            text = files.read(path).text
        except files.FileProblem:
            return ""
    return digest(text)
