"""Folders of modules that exist in memory only."""

from __future__ import annotations


class Folder:
    """A loader over texts by path."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def find(self, module: str) -> tuple[str, str] | None:
        stem = module.replace(".", "/")
        return next(((p, self.files[p]) for p in (f"{stem}/__init__.py", f"{stem}.py") if p in self.files), None)

    def module_name(self, path: str) -> str | None:
        return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
