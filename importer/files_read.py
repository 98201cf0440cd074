"""A loader that knows whether what it has given out is still what an import would find."""

from __future__ import annotations

import os
import time

from graphmend.workspace.module_loader import ModuleLoader

_Stamp = tuple[int, int] | None

#: seconds in which a folder may be changed again without another time: the clock of a file system is a coarse one
_RECENT = 2.0


class FilesRead:
    """Modules as a `ModuleLoader` finds them: a program may write files while it runs."""

    def __init__(self, loader: ModuleLoader) -> None:
        self._loader = loader
        self._read: dict[str, _Stamp] = {}
        self._missing: set[str] = set()
        """The names of modules that were not found."""
        self._folders: dict[str, int] = {}
        """Those in which something would be made first for one of them to be there, and when each was changed; -1 asks
        for them each time.
        """

    def find(self, module: str) -> tuple[str, str] | None:
        found = self._loader.find(module)
        if found is None:
            if module not in self._missing:
                self._missing.add(module)
                self._watch(module)
        elif found[0] not in self._read:
            self._read[found[0]] = _stamp(found[0])
        return found

    def module_name(self, path: str) -> str | None:
        return self._loader.module_name(path)

    def changed(self) -> list[str]:
        """The paths of files that have changed, and of those that are there by now, told once."""
        found = []
        for path, known in self._read.items():
            if known != (now := _stamp(path)):
                self._read[path] = now
                found.append(path)
        if any(known != _changed_at(folder) or known < 0 for folder, known in self._folders.items()):
            missing, self._missing = self._missing, set()
            self._folders = {}
            found += [there[0] for module in sorted(missing) if (there := self.find(module)) is not None]
        return found

    def _watch(self, module: str) -> None:
        """A module comes with a new entry of a folder on the way to it, or with another text of a file that was no
        module.
        """
        for folder in self._loader.search:
            stem = os.path.join(folder, *module.split("."))
            for file in (f"{stem}.py", os.path.join(stem, "__init__.py")):
                if os.path.lexists(file):
                    self._folders[file] = -1
                path = os.path.dirname(file)
                while not os.path.isdir(path) and path != str(folder):
                    path = os.path.dirname(path)
                if path not in self._folders:
                    self._folders[path] = _changed_at(path, _RECENT)


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _changed_at(folder: str, recent: float = 0.0) -> int:
    """When something was made or taken away in a folder, in nanoseconds; -1 where that is not told apart from later."""
    try:
        changed = os.stat(folder).st_mtime_ns
    except OSError:
        return 0
    return -1 if changed > time.time_ns() - recent * 1e9 else changed
