"""Which files an assistant may ask about: those below the folders that were named at the start, links resolved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class Outside(Exception):
    """A path is none that may be asked about; the message is one line."""


class Folders:
    """`folders` exist; a path that is not absolute is looked for in each, in order."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folder.resolve(strict=True) for folder in folders)

    def file(self, text: str) -> Path:
        """The Python file that a path names; raises `Outside`."""
        if "\0" in text:
            raise Outside("a path holds no null character")
        given = Path(text)
        for folder in self.folders:
            path = (given if given.is_absolute() else folder / given).resolve()
            if path.is_relative_to(folder) and path.is_file():
                if path.suffix not in (".py", ".pyi"):
                    raise Outside(f"{text} is no Python file")
                return path
        names = ", ".join(str(folder) for folder in self.folders)
        raise Outside(f"{text} is no file below {names}")

    def shown(self, path: str) -> str:
        """A path as the assistant names it: below its folder where it is in one."""
        for folder in self.folders:
            if Path(path).is_relative_to(folder):
                return Path(path).relative_to(folder).as_posix()
        return path
