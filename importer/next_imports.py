"""Which files a module imports when it runs, in order: found in its text, nothing is imported.

Conditions are taken to hold but for those of type checkers: a file too many costs time, no more.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import ModuleInfo
    from graphmend.analysis.program.project import Project

#: where a package loads names when they are asked for: how many modules deep, and in how many `import *`, one is sought
_DEEPEST = 5
_MOST_STARS = 20


class NextImports:
    """Follows imports to the files that are to be mended."""

    def __init__(self, project: Project, is_target: Callable[[str], bool]) -> None:
        self._project, self._is_target = project, is_target
        self._paths: dict[str, str | None] = {}
        """Cache: the files of modules, by dotted name."""

    def of(self, text: str, path: str) -> Iterator[str]:
        """The paths, one and the same more than once perhaps."""
        from graphmend.analysis.syntax.source import Source

        source = Source(text, path)
        module = self._project.alone(source)
        if module is None or source.tree is None:
            return
        for statement in list(_run_at_once(source.tree.body)):
            for name in _names(module, statement):
                yield from self._files(name)

    def _files(self, name: str, depth: int = 0) -> Iterator[str]:
        """The files that run before something with a qualified name is there."""
        parts = name.split(".")
        owner = ""
        for end in range(1, len(parts) + 1):
            module = ".".join(parts[:end])
            path = self._path(module)
            if path is None:
                break
            owner = module
            if self._is_target(path):
                yield path
        rest = parts[len(owner.split(".")) if owner else 0 :]
        if owner and rest and depth < _DEEPEST:
            yield from self._of_definition(owner, rest[0], depth)

    def _of_definition(self, owner: str, name: str, depth: int) -> Iterator[str]:
        """Those behind a name that a package takes from one of its modules, perhaps not before it is asked for."""
        path = self._path(owner)
        if path is None or not self._is_target(path) or (module := self._project.module(owner)) is None:
            return
        if name in module.imports:
            yield from self._files(module.imports[name], depth + 1)
        elif not _defines(module, name) and len(module.stars) <= _MOST_STARS:
            for star in module.stars:
                inner = self._project.module(star) if self._path(star) is not None else None
                if inner is not None and (_defines(inner, name) or name in inner.imports):
                    yield from self._files(f"{star}.{name}", depth + 1)
                    return

    def _path(self, module: str) -> str | None:
        if module not in self._paths:
            from graphmend.analysis.program.project import NEVER_READ

            known = module.partition(".")[0] not in NEVER_READ
            found = self._project.loader.find(module) if known else None
            self._paths[module] = found[0] if found is not None else None
        return self._paths[module]


def _run_at_once(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The imports among statements, and in the blocks of those that hold any."""
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, ast.If):
            if "TYPE_CHECKING" not in ast.unparse(statement.test):
                yield from _run_at_once(statement.body)
            yield from _run_at_once(statement.orelse)
        elif isinstance(statement, (ast.Try, ast.With)):
            yield from _run_at_once(statement.body)
            if isinstance(statement, ast.Try):
                yield from _run_at_once(statement.orelse)


def _names(module: ModuleInfo, statement: ast.stmt) -> list[str]:
    """The qualified names that an import asks for."""
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    assert isinstance(statement, ast.ImportFrom)
    return [*module.imported(statement).values()] or [module.absolute(statement)]


def _defines(module: ModuleInfo, name: str) -> bool:
    return name in module.functions or name in module.classes or name in module.globals
