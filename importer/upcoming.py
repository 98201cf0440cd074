"""Which file a program will want mended next, as far as one can tell before it asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from graphmend.importer.next_imports import NextImports

if TYPE_CHECKING:
    from graphmend.analysis.program.project import Project

#: results that nobody has asked for; with more of them the guess was bad
_MOST_UNASKED = 100


class Upcoming(Protocol):
    """The files to look at, one after the other; some more than once."""

    builds_up: bool
    """Will all that is looked at run in the end, so that each is mended among the others' mended texts?"""

    def begin(self, project: Project) -> None:
        """The program begins (again), and its modules are found in this project."""

    def imported(self, path: str, by_program: bool) -> None:
        """The program imports this file, not because of another one of those that are mended if `by_program`."""

    def follow(self, text: str, path: str) -> None:
        """This text of a file runs, or will."""

    def asked(self) -> None:
        """The program has asked for a file."""

    def kept(self) -> None:
        """What an earlier run has made of the file that was the next one holds."""

    def next(self, unasked: int) -> str | None:
        """The next file; None where none is to be expected. `unasked` is how many results nobody has asked for."""


class Program:
    """Where the program begins, and which files are its own: a script, or none."""

    def __init__(self, is_target: Callable[[str], bool], script: tuple[str, str] | None = None) -> None:
        self.is_target = is_target
        self.script = script
        """Its text and path."""

    def is_own(self, path: str) -> bool:
        """Is this a file of the program's, and not of a library beside it?"""
        if self.script is None:
            return False
        inside = Path(path).is_relative_to(Path(self.script[1]).parent)
        return inside and "site-packages" not in path and "dist-packages" not in path

    def imports(self, project: Project) -> NextImports:
        return NextImports(project, lambda path: self.is_target(path) or self.is_own(path))


class InImportOrder:
    """For modules that are mended while they are imported: what has been imported, and what the last texts import."""

    builds_up = True

    def __init__(self, program: Program) -> None:
        self._program = program
        self._imports: NextImports | None = None
        self._imported: list[str] = []
        """What nobody has looked at."""
        self._coming: list[Iterator[str]] = []
        """Where the imports go on, the innermost module's last."""
        self._late: list[Iterator[str]] = []
        """What functions of the program's own files will import."""

    def begin(self, project: Project) -> None:
        self._imports = self._program.imports(project)
        self._coming.clear()
        self._late.clear()
        if self._program.script is not None:
            self.follow(*self._program.script)

    def imported(self, path: str, by_program: bool) -> None:
        if path not in self._imported:
            self._imported.append(path)

    def follow(self, text: str, path: str) -> None:
        if self._imports is not None:
            self._coming.append(self._imports.of(text, path))
            if self._program.is_own(path):
                self._late.append(self._imports.later(text, path))

    def asked(self) -> None: ...

    def kept(self) -> None: ...

    def next(self, unasked: int) -> str | None:
        if self._imported:
            return self._imported.pop(0)
        while unasked < _MOST_UNASKED and (self._coming or self._late):
            if not self._coming:
                self._coming.append(self._late.pop(0))
            if (path := next(self._coming[-1], None)) is not None:
                return path
            self._coming.pop()
        return None


class AsTraced:
    """For modules that are mended when something is compiled that comes to them: what the program's own files import or
    name, in that order, each with the files that were read to analyse it.

    Where what is named has been mended in an earlier run nothing is guessed: what that run has come to is kept as well.
    """

    builds_up = False

    def __init__(self, program: Program) -> None:
        self._program = program
        self._project: Project | None = None
        self._named: deque[Iterator[str]] = deque()
        self._imported: deque[str] = deque()
        self._read: deque[str] = deque()
        self._others: list[str] = []
        """What other modules import."""
        self._last: str | None = None
        """The last file that was not read for another one."""
        self._is_known = False
        self._is_asked = False

    def begin(self, project: Project) -> None:
        self._project = project
        self._named.clear()
        self._read.clear()
        if self._program.script is not None:
            self.follow(*self._program.script)

    def imported(self, path: str, by_program: bool) -> None:
        if by_program:
            self._imported.append(path)
        else:
            self._others.append(path)

    def follow(self, text: str, path: str) -> None:
        if self._project is None:
            return
        if self._program.is_own(path):
            self._named.append(self._program.imports(self._project).definitions(text, path))
        if path == self._last:
            self._read.extend(filter(self._program.is_target, self._project.paths()))

    def asked(self) -> None:
        self._is_asked = True

    def kept(self) -> None:
        self._is_known = True

    def next(self, unasked: int) -> str | None:
        if self._read and not self._is_known and unasked < _MOST_UNASKED:
            return self._read.popleft()
        self._last = self._next_by_program()
        if self._last is not None or self._is_known or unasked >= _MOST_UNASKED:
            return self._last
        return self._others.pop() if self._others and self._is_asked else None

    def _next_by_program(self) -> str | None:
        if self._imported:
            return self._imported.popleft()
        while self._named:
            if (path := next(self._named[0], None)) is not None:
                return path
            self._named.popleft()
        return None
