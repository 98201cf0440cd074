"""Results of earlier checks, in the user's cache folder. Concurrent runs share it; with anything wrong it counts as
empty.

One entry for each file and set of options, replaced when its stamp is out of date: the folder stays as small as the
projects are. A stamp covers the file, every Python file that its analysis may have read, and GraphMend itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import platformdirs

import graphmend
from graphmend.workspace import files
from graphmend.workspace.config import DEFAULT_EXCLUDE
from graphmend.workspace.interpreter import Interpreter

#: a folder with more entries than this (somebody's home) is not stamped, and what depends on it is not cached
_LIMIT = 50_000


def digest(*parts: str | bytes) -> str:
    """One short text that differs where any part does."""
    total = hashlib.blake2b(digest_size=16)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        total.update(len(data).to_bytes(8, "little"))
        total.update(data)
    return total.hexdigest()


def cache_folder() -> Path:
    """Where the cache is: `GRAPHMEND_CACHE_DIR`, or the platform's place."""
    return Path(os.environ.get("GRAPHMEND_CACHE_DIR") or platformdirs.user_cache_dir("graphmend", appauthor=False))


class Cache:
    """Entries of JSON by name; each is good for one stamp only."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = (folder or cache_folder()) / "check"
        self._usable = True

    def load(self, name: str, stamp: str) -> Any | None:
        """What was stored under a name with this stamp; None where nothing was."""
        try:
            entry = json.loads((self._folder / name[:2] / name[2:]).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(entry, dict) or entry.get("stamp") != stamp:
            return None
        return entry.get("data")

    def store(self, name: str, stamp: str, data: Any) -> None:
        """Keep JSON data. A folder that cannot be written is not tried again."""
        if not self._usable:
            return
        path = self._folder / name[:2] / name[2:]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            entry = json.dumps({"stamp": stamp, "data": data}, separators=(",", ":"))
            files.replace(path, entry.encode(), lasts=False)  # what is left of one counts as none
        except (OSError, files.FileProblem, ValueError):
            self._usable = False

    def stamp(self, folders: Iterable[Path], interpreter: Interpreter) -> str | None:
        """A stamp of what surrounds a file; None where there is too much of it."""
        parts = [own_stamp(), sys.version, str(interpreter.torch_version)]
        for folder in dict.fromkeys(folders):
            stamp = folder_stamp(folder)
            if stamp is None:
                return None
            parts.append(stamp)
        for folder in interpreter.packages:
            installed = folder.name in ("site-packages", "dist-packages")
            stamp = _entries(folder) if installed else folder_stamp(folder)
            if stamp is None:
                return None
            parts.append(stamp)
        return digest(*parts)


def forget_stamps() -> None:
    """Read folders again: this process wrote files."""
    folder_stamp.cache_clear()


@lru_cache(maxsize=256)
def folder_stamp(folder: Path) -> str | None:
    """Names, sizes and times of the Python files below a folder; read once a process. None where there are too many."""
    try:
        return digest(str(folder), *_files(folder, (".py",)))
    except OverflowError:
        return None


def _files(folder: Path, endings: tuple[str, ...]) -> Iterator[str]:
    skipped, entries = frozenset(DEFAULT_EXCLUDE), 0
    for where, folders, names in os.walk(folder):
        entries += len(folders) + len(names)
        if entries > _LIMIT:
            raise OverflowError
        folders[:] = sorted(name for name in folders if name not in skipped)
        for name in sorted(names):
            if name.endswith(endings):
                path = os.path.join(where, name)
                with contextlib.suppress(OSError):
                    status = os.stat(path)
                    yield f"{path}\0{status.st_size}\0{status.st_mtime_ns}"


def packages_stamp(interpreter: Interpreter) -> str:
    """Changes when a package is installed, replaced or removed; looked up anew, as a server outlives that."""
    return digest(*map(_now_in, interpreter.packages))


def _now_in(folder: Path) -> str:
    """The names and time of a folder of packages: an installation changes both."""
    try:
        return digest(str(folder), str(os.stat(folder).st_mtime_ns), *sorted(os.listdir(folder)))
    except OSError:
        return str(folder)


_entries = lru_cache(maxsize=256)(_now_in)


@lru_cache(maxsize=1)
def own_stamp() -> str:
    """GraphMend's version and files: a changed rule makes every entry old, in a checkout too."""
    folder = Path(graphmend.__file__).parent
    rooms = (room for room in sorted(folder.iterdir()) if room.is_dir())
    return digest(graphmend.__version__, *(file for room in rooms for file in _files(room, (".py", ".json"))))
