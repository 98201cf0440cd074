"""What mending a file gave, what it needs to know of the others, and what is reported of it."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple, Protocol

from graphmend.workspace.cache import digest

Note = dict[str, Any]
"""What happened to one finding, as JSON."""


class Compiled(NamedTuple):
    """What a mended text compiles to in the place of the file's own (`code/mended_code.py`)."""

    of: str
    """A digest of the file's own text."""
    data: bytes
    """The code, marshalled."""

    def code(self, text: str) -> CodeType | None:
        """The code, where this is the file's own text."""
        if self.of != digest(text):
            return None
        code: CodeType = marshal.loads(self.data)
        return code


class Elsewhere(NamedTuple):
    """Another file: its text with mends, and those that this file's import has added."""

    text: str
    mends: Sequence[Note]
    code: Compiled | None = None


class Outcome(NamedTuple):
    """What mending a text gave. `text` is None where nothing was changed."""

    text: str | None = None
    mends: Sequence[Note] = ()
    left: Sequence[Note] = ()
    elsewhere: Mapping[str, Elsewhere] = {}
    """What was mended in other files, whose breaks only show from this one."""
    problem: str | None = None
    """Why the text could not be looked at."""
    code: Compiled | None = None

    @classmethod
    def failed(cls, error: Exception) -> Outcome:
        return cls(problem=f"it could not be mended ({type(error).__name__}: {error})")


class Texts(Protocol):
    """The modules' texts as they run now."""

    def now(self, path: str) -> str | None:
        """The text of a file with the mends made so far; None for one that is never mended."""

    def original(self, path: str) -> str | None:
        """The text of the file itself."""


class Mender(Protocol):
    """Mends texts."""

    def mend(self, text: str, path: str, texts: Texts) -> Outcome:
        """Mends the text of the file at `path`, and of others. Lines end in LF."""

    def load(self, text: str, path: str, texts: Texts) -> tuple[CodeType | None, Outcome] | None:
        """What an earlier run made of the same text, with the same ones around it; None where nothing is known."""

    def store(self, text: str, path: str, code: CodeType | None, outcome: Outcome) -> None:
        """Keeps it for a later run, if that is possible."""

    def expect(self, path: str, by_program: bool) -> None:
        """The program imports this file, and may want it mended later; `by_program` if no other such file does."""

    def in_order(self, paths: Sequence[str]) -> Sequence[str]:
        """The order in which files are mended with the least work; without another reason that in which they come."""

    def end(self) -> None:
        """Lets go of what mending needs beyond this object."""


@dataclass
class Report:
    """What was done to the modules of a program, by path."""

    mended: dict[str, Outcome] = field(default_factory=dict)
    left: dict[str, Sequence[Note]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)
    """Files that ran as they are, and why."""
    waiting: dict[str, str] = field(default_factory=dict)
    """The texts of files that are mended before they are traced, by path, in the order of their imports."""
    remarks: list[str] = field(default_factory=list)
    """What is not as one would think with the torch that the program has, a sentence each."""
    taken_back: Callable[[], list[tuple[str, int, str, str]] | None] = lambda: None
    """The numbers that are not kept in the graph after that was tried: path, line, function and reason of each. None
    where none are kept."""

    kept: Callable[[], list[tuple[str, int, str]]] = list
    """The numbers and sizes that are kept in graphs: path, line and function of each."""

    def add(self, path: str, outcome: Outcome) -> None:
        if outcome.problem is not None:
            self.problems[path] = outcome.problem
        if outcome.text is not None:
            before = self.mended.get(path, Outcome())  # mended because of another file
            new = [mend for mend in outcome.mends if mend not in before.mends]
            self.mended[path] = outcome._replace(mends=[*before.mends, *new])
        if outcome.left:
            self.left[path] = outcome.left
