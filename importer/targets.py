"""Which modules are mended: those of the packages that are named, or of the program's own folders."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

#: torch's own top-level packages, and ours
UNTOUCHED = frozenset({"torch", "torchgen", "functorch", "graphmend"})
_PACKAGES = ("site-packages", "dist-packages")


class MendingFinder(MetaPathFinder):
    """A finder of ours, which asks the others."""


class Targets:
    """The modules to mend: packages by name, and folders without what is installed in them."""

    def __init__(self, names: Iterable[str] = (), folders: Iterable[Path] = ()) -> None:
        self._names = tuple(names)
        for name in self._names:
            if _top(name) in UNTOUCHED or _top(name) in sys.stdlib_module_names:
                raise ValueError(f"{name} is never mended")
        self._folders = tuple(os.path.realpath(folder) for folder in folders)
        self.unused = set(self._names)
        """The names of which nothing was imported so far."""

    def may_hold(self, name: str) -> bool:
        """Could a module of this name be one of them? In folders only the file decides."""
        return _top(name) not in UNTOUCHED and (bool(self._folders) or self._names_hold(name))

    def hold(self, name: str, path: str) -> bool:
        """Is the module of this name, whose file is `path`, one of them?"""
        real = os.path.realpath(path)
        if _top(name) in UNTOUCHED or any(_inside(real, folder) for folder in self._untouched):
            return False
        return (
            self._names_hold(name)
            or any(_inside(real, folder, installed=True) for folder in self._package_folders)
            or any(_inside(real, folder) for folder in self._folders)
        )

    def _names_hold(self, name: str) -> bool:
        return any(name == target or name.startswith(f"{target}.") for target in self._names)

    @functools.cached_property
    def _package_folders(self) -> list[str]:
        """Where the named packages lie: code is loaded from there under other names too."""
        return [folder for name in self._names for folder in _folders_of(name)]

    @functools.cached_property
    def _untouched(self) -> list[str]:
        """Where torch, GraphMend and the standard library lie."""
        library = os.path.dirname(os.path.realpath(os.__file__))
        return [library, *(folder for name in sorted(UNTOUCHED) for folder in _folders_of(name))]


def _top(name: str) -> str:
    return name.partition(".")[0]


def _folders_of(name: str) -> list[str]:
    """The folders of a package, found without importing it."""
    top, *rest = name.split(".")
    spec = search((finder for finder in sys.meta_path if not isinstance(finder, MendingFinder)), top)
    locations = spec.submodule_search_locations if spec else None
    return [os.path.realpath(os.path.join(folder, *rest)) for folder in locations or ()]


def search(
    finders: Iterable[Any], name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
) -> ModuleSpec | None:
    """What the first of the finders that knows a module says."""
    for finder in finders:
        spec: ModuleSpec | None = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec
    return None


def _inside(path: str, folder: str, *, installed: bool = False) -> bool:
    """Is a file below a folder? What is installed below it counts only if asked for."""
    below = path.startswith(folder.rstrip(os.sep) + os.sep)
    return below and (installed or not any(part in _PACKAGES for part in path[len(folder) :].split(os.sep)))
