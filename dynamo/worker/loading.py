"""Imports the file that is checked, under its real dotted name, with the texts of unsaved buffers in place of the
files.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import linecache
import os
import sys
from types import ModuleType
from typing import Any


def dotted_name(path: str) -> tuple[str, str]:
    """(module name, folder for `sys.path`) of a file: packages reach up as far as there is an `__init__.py`."""
    folder, file = os.path.split(os.path.abspath(path))
    stem = os.path.splitext(file)[0]
    parts = [] if stem == "__init__" else [stem]
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        parts.insert(0, package)
    return ".".join(parts), folder


class TextLoader(importlib.machinery.SourceFileLoader):
    """Loads a module from a text that is not, or not yet, in its file."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text.lstrip("\ufeff")

    def path_stats(self, path: str) -> Any:
        raise OSError("no bytecode for a text that is not in a file")

    def get_data(self, path: str) -> bytes:
        return self.text.encode("utf-8", "surrogatepass")

    def source_to_code(self, data: Any, path: Any, **_: Any) -> Any:  # type: ignore[override]
        return compile(self.text, path, "exec", dont_inherit=True)

    def get_source(self, fullname: str) -> str:
        return self.text


class Overlay:
    """A finder that lets the other finders find, and changes the loader of files that have another text."""

    def __init__(self, texts: dict[str, str]) -> None:
        self.texts = {os.path.realpath(path): text for path, text in texts.items()}
        for path, text in texts.items():
            for name in {path, os.path.realpath(path)}:
                linecache.cache[name] = (len(text), None, text.lstrip("\ufeff").splitlines(True), name)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        for finder in sys.meta_path:
            if finder is self:
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return self.with_text(spec)
        return None

    def with_text(self, spec: importlib.machinery.ModuleSpec) -> importlib.machinery.ModuleSpec:
        if spec.origin is not None:
            text = self.texts.get(os.path.realpath(spec.origin))
            if text is not None:
                spec.loader = TextLoader(spec.name, spec.origin, text)
        return spec

    def install(self) -> None:
        if self.texts:
            sys.meta_path.insert(0, self)


class RuntimeFinder:
    """Lets mended text import `graphmend.runtime` where graphmend is not installed: it lies beside this folder.

    Asked last: an installed one wins.
    """

    folder = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != "graphmend":
            return None
        spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [self.folder]
        return spec


def load(path: str, texts: dict[str, str], name: str | None = None, root: str | None = None) -> ModuleType:
    """Imports the file at `path`."""
    overlay = Overlay(texts)
    overlay.install()
    sys.meta_path.append(RuntimeFinder())
    found, folder = dotted_name(path)
    name = name or found
    sys.path.insert(0, root or folder)
    real = os.path.realpath(path)
    importlib.invalidate_caches()
    if name.replace(".", "_").isidentifier() and name not in sys.modules:
        spec = _spec_of(name, root or folder)
        if spec is not None and spec.origin is not None and os.path.realpath(spec.origin) == real:
            return importlib.import_module(name)
    # The name belongs to another module (`types.py`), or is no name (`train-small.py`).
    private = "graphmend_checked_" + "".join(c if c.isalnum() else "_" for c in name)
    text = overlay.texts.get(real)
    loader = None if text is None else TextLoader(private, path, text)  # a notebook's module has no file of its own
    spec = importlib.util.spec_from_file_location(private, path, loader=loader)
    if spec is None or spec.loader is None:
        raise ImportError(f"not a Python file: {path}")
    overlay.with_text(spec)
    module = importlib.util.module_from_spec(spec)
    sys.modules[private] = module
    spec.loader.exec_module(module)
    return module


def _spec_of(name: str, folder: str) -> importlib.machinery.ModuleSpec | None:
    """Where a module of that name is. The packages around it are imported; one that cannot be, for it wants a library
    that is not installed, or a machine or setting that is not here, has no code of its own then.
    """
    parts = name.split(".")
    for number in range(1, len(parts)):
        package = ".".join(parts[:number])
        try:
            importlib.import_module(package)
        except Exception:  # whatever a package raises for want of what is not here, the file may do without the package
            bare = sys.modules[package] = ModuleType(package)
            bare.__path__ = [os.path.join(folder, *parts[:number])]
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
