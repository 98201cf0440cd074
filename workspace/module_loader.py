"""Where the text of a module comes from: a `Loader` over folders. Finds what an import would and runs nothing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from graphmend.workspace import files
from graphmend.workspace.config import absolute
from graphmend.workspace.interpreter import Interpreter


def package_root(path: Path) -> Path:
    """The folder that a file is imported from: the first one above it that is no package."""
    folder = absolute(path).parent
    while (folder / "__init__.py").is_file() and folder.parent != folder:
        folder = folder.parent
    return folder


def surroundings(path: Path) -> Path:
    """The folder whose files the analysis of a file may depend on: its root, but of installed packages only its own."""
    root = package_root(path)
    if root.name in ("site-packages", "dist-packages") and root != absolute(path).parent:
        return root / absolute(path).relative_to(root).parts[0]
    return root


class ModuleLoader:
    """Modules in reach of the files under one root: the root itself, then `folders`, then the interpreter's packages.

    `overlay` holds texts that replace files on disk, by path: an editor's unsaved documents.
    """

    def __init__(
        self,
        root: Path,
        folders: Sequence[Path] = (),
        interpreter: Interpreter | None = None,
        overlay: dict[str, str] | None = None,
    ) -> None:
        own = [root, *(folder for base in folders for folder in (base, base / "src"))]
        self.own = tuple(dict.fromkeys(folder for folder in own if folder.is_dir()))
        self.overlay = overlay if overlay is not None else {}
        self.interpreter = interpreter

    @property
    def search(self) -> tuple[Path, ...]:
        """Every folder that is looked into, in order."""
        return (*self.own, *(self.interpreter.packages if self.interpreter else ()))

    def find(self, module: str) -> tuple[str, str] | None:
        """(path, text) of a module by its dotted name; None where there is none or it cannot be read."""
        parts = module.split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        for folder in self.search:
            if (path := _in(folder, parts)) is not None:
                return self._read(path)
            if (folder / parts[0] / "__init__.py").is_file():
                return None  # a regular package is found whole in one folder
        return None

    def module_name(self, path: str) -> str | None:
        """The dotted name under which a file is imported; None where no folder that is looked into holds it."""
        file = absolute(Path(path))
        names = (name for folder in (package_root(file), *self.search) if (name := _name_below(folder, file)))
        return next(names, None)

    def _read(self, path: str) -> tuple[str, str] | None:
        if path in self.overlay:
            return path, self.overlay[path]
        try:
            return path, files.read(path).text
        except files.FileProblem:
            return None


def _in(folder: Path, parts: list[str]) -> str | None:
    """The file that a dotted name means below one folder."""
    stem = os.path.join(folder, *parts)
    for path in (os.path.join(stem, "__init__.py"), stem + ".py"):
        if os.path.isfile(path):
            return path
    return None


def _name_below(folder: Path, file: Path) -> str | None:
    try:
        parts = list(file.relative_to(folder).with_suffix("").parts)
    except ValueError:
        return None
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if parts and all(part.isidentifier() for part in parts) else None
