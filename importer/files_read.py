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
        self._awaited: dict[str, dict[str, set[str]]] = {}
        """By those: the modules that would be there with an entry of a name."""

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
        for module in sorted(self._again()):
            self._missing.discard(module)
            if (there := self.find(module)) is not None:
                found.append(there[0])
        return found

    def _again(self) -> set[str]:
        """The missing modules that may be there by now: something by their names is in a folder that has changed."""
        modules: set[str] = set()
        for folder, known in self._folders.items():
            if known != _changed_at(folder) or known < 0:
                self._folders[folder] = _changed_at(folder, _RECENT)
                awaited = self._awaited[folder]
                for name in awaited.keys() & _names_in(folder):
                    modules |= awaited[name] & self._missing
        return modules

    def _watch(self, module: str) -> None:
        """A module comes with a new entry of a folder on the way to it, or with another text of a file that was no
        module.
        """
        for folder in self._loader.search:
            stem = os.path.join(folder, *module.split("."))
            for file in (f"{stem}.py", os.path.join(stem, "__init__.py")):
                if os.path.lexists(file):
                    self._await(module, file, "", -1)
                path, missing = os.path.split(file)
                while not os.path.isdir(path) and path != str(folder):
                    path, missing = os.path.split(path)
                self._await(module, path, missing.removesuffix(".py"), _changed_at(path, _RECENT))

    def _await(self, module: str, place: str, name: str, changed: int) -> None:
        self._folders.setdefault(place, changed)
        self._awaited.setdefault(place, {}).setdefault(name, set()).add(module)


def _names_in(place: str) -> set[str]:
    """The modules of which something lies in a folder; a file has one without a name."""
    try:
        return {name.partition(".")[0] for name in os.listdir(place)}
    except NotADirectoryError:
        return {""}
    except OSError:
        return set()


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
