"""Facts about other modules, through a `Loader` that the caller supplies. Knows no file system itself."""

from __future__ import annotations

from typing import Protocol


class Loader(Protocol):
    """Where the text of a module comes from."""

    def find(self, module: str) -> tuple[str, str] | None:
        """(path, text) of a module by its dotted name; None where there is none. Never runs code."""


class Project:
    """Modules that were read so far, by dotted name."""

    def __init__(self, loader: Loader) -> None:
        self.loader = loader
