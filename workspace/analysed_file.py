"""One file on disk as the analysis sees it: its text, the modules that it may import, the settings that hold for it."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from graphmend.analysis.check import Result, check
from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source
from graphmend.workspace import files, interpreter
from graphmend.workspace.config import Configuration
from graphmend.workspace.module_loader import ModuleLoader, package_root
from graphmend.workspace.notebooks import reading


class AnalysedFile:
    """`compiled` names targets that count as compiled; `python` is the interpreter whose torch is meant; `texts`
    stand in for files on disk, as they are when a module is read.
    """

    def __init__(
        self,
        path: Path,
        configuration: Configuration,
        python: str | None = None,
        compiled: tuple[str, ...] = (),
        texts: dict[str, str] | None = None,
    ) -> None:
        self.path = path
        self.configuration = configuration
        self._texts = texts if texts is not None else {}
        self.interpreter = interpreter_for(python, package_root(path))
        self.settings = replace(configuration.settings(self.interpreter.torch_version), compiled=compiled)

    @cached_property
    def read(self) -> files.FileText:
        """The file as it was read the first time. Raises `FileProblem`."""
        return reading.read(self.path)

    @cached_property
    def source(self) -> Source:
        """Its text. Raises `FileProblem`."""
        return Source(self.read.text, str(self.path))

    @cached_property
    def project(self) -> Project:
        return Project(ModuleLoader(package_root(self.path), (self.configuration.root,), self.interpreter, self._texts))

    def look(self, text: Source) -> Result:
        """The findings of a text that stands, or would stand, in the place of the file's."""
        self.project.forget(text.path)
        return check(text, self.project, self.settings)


def interpreter_for(python: str | None, folder: Path) -> interpreter.Interpreter:
    """The interpreter given by a path, else the one that the project in a folder most likely uses."""
    named = interpreter.at(Path(python)) if python else None
    return named or interpreter.nearest(folder)


def executable_for(given: str | None, path: Path) -> str:
    """The executable to run for a file: the one given, else that of the environment around the file, else our own."""
    if given is not None:
        folder = Path(given).expanduser()
        return str(_executable(folder) or given) if folder.is_dir() else os.path.expanduser(given)
    prefix = interpreter.nearest(package_root(path)).prefix
    return sys.executable if prefix == Path(sys.prefix) else str(_executable(prefix) or sys.executable)


def _executable(prefix: Path) -> Path | None:
    candidates = (prefix / "bin" / "python", prefix / "bin" / "python3", prefix / "Scripts" / "python.exe")
    return next((path for path in candidates if path.exists()), None)
