"""A target as it is typed, and the request that it becomes."""

from __future__ import annotations

import os
from pathlib import Path

from graphmend.analysis.syntax.notebook_cells import definitions_only
from graphmend.cli.failures import UsageError
from graphmend.dynamo.requests import Declared, Request
from graphmend.workspace import files
from graphmend.workspace.analysed_file import executable_for, interpreter_for
from graphmend.workspace.config import Configuration, absolute
from graphmend.workspace.discovery import SUFFIXES
from graphmend.workspace.module_loader import ModuleLoader
from graphmend.workspace.notebooks import reading


def split(text: str) -> tuple[str, str]:
    """(file or module, name) of a target; the name may be empty. `::` separates as `:` does."""
    place, colon, name = text.rpartition(":")
    if not colon or name.endswith(SUFFIXES) or os.sep in name:
        return text, ""
    return place.removesuffix(":"), name


def resolve(text: str, python: str | None) -> tuple[Path, str]:
    """(file, name) of a target; the name may be empty. Raises `UsageError`."""
    place, name = split(text)
    path = absolute(Path(place))
    if place.endswith(SUFFIXES) or path.exists():
        if path.is_dir():
            raise UsageError(f"{place} is a folder; name a file of it")
        if not path.is_file():
            raise UsageError(f"{place} does not exist")
        return path, name
    found = find_module(place, python)
    if found is None:
        raise UsageError(f"{place} is neither a file nor a module that can be found")
    return found, name


def find_module(name: str, python: str | None) -> Path | None:
    """The file of a module, as the current folder, PYTHONPATH or the interpreter's packages have it."""
    root = Path.cwd()
    folders = [Path(folder) for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    found = ModuleLoader(root, (root, *folders), interpreter_for(python, root)).find(name)
    return absolute(Path(found[0])) if found is not None else None


def request(
    path: Path, names: tuple[str, ...], configuration: Configuration, python: str | None, cwd: str, timeout: float
) -> Request:
    """A check of one file. Raises `UsageError` for a notebook that cannot be read."""
    return Request(
        path=str(path),
        names=names,
        declared=declared(configuration),
        timeout=timeout,
        interpreter=executable_for(python, path),
        roots=(str(configuration.root),) if configuration.file is not None else (),
        cwd=cwd,
        texts=_notebook(path),
    )


def declared(configuration: Configuration) -> tuple[Declared, ...]:
    """The `[[tool.graphmend.targets]]` entries."""
    return tuple(Declared(e["target"], e.get("init", ""), e.get("inputs", "")) for e in configuration["targets"])


def _notebook(path: Path) -> dict[str, str]:
    """A notebook's module by path, as far as it defines something: its cells train and print, too."""
    if path.suffix != reading.SUFFIX:
        return {}
    try:
        text = reading.read(path)
    except files.FileProblem as problem:
        raise UsageError(f"{path}: {problem}") from None
    return {str(path): definitions_only(text.text)}
