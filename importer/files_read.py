"""A loader that knows whether what it has given out is still what an import would find."""

from __future__ import annotations

import os

from graphmend.workspace.module_loader import ModuleLoader

_Stamp = tuple[int, int] | None


class FilesRead:
    """Modules as a `ModuleLoader` finds them: a program may write files while it runs."""

    def __init__(self, loader: ModuleLoader) -> None:
        self._loader = loader
        self._read: dict[str, _Stamp] = {}
        self._missing: set[str] = set()
        """The names of modules that were not found."""

    def find(self, module: str) -> tuple[str, str] | None:
        found = self._loader.find(module)
        if found is None:
            self._missing.add(module)
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
        for module in list(self._missing):
            if (there := self._loader.find(module)) is not None:
                self._missing.discard(module)
                found.append(there[0])
        return found


def _stamp(path: str) -> _Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
