"""The modules that run: their codes, and how another code takes the place of one."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType


class LoadedModules:
    """By path: the texts of the files that were loaded, and the codes that were run, of mended texts perhaps."""

    def __init__(self) -> None:
        self._codes: dict[str, list[tuple[str, CodeType]]] = {}
        self._functions: dict[str, list[FunctionType]] | None = None

    def __contains__(self, path: str) -> bool:
        return path in self._codes

    def add(self, path: str, text: str, code: CodeType) -> None:
        self._codes.setdefault(path, []).append((text, code))

    @contextlib.contextmanager
    def looked_through_once(self) -> Iterator[None]:
        """Functions are looked for once for all that is replaced meanwhile: that goes through all objects there are."""
        self._functions = self._found(*self._codes)
        try:
            yield
        finally:
            self._functions = None

    def replace(self, path: str, text: str, code: CodeType) -> None:
        """Gives the functions of a file, as far as they come from this text of it, another code.

        Raises `Unswappable`, with nothing changed, where one of them cannot take it.
        """
        from graphmend.importer.code import code_swap

        codes: dict[CodeType, CodeType] = {}
        known = self._codes.get(path, [])
        for of, old in known:
            if of == text:
                codes |= code_swap.replacements(old, code)
        functions = self._functions if self._functions is not None else self._found(path)
        code_swap.swap(functions.get(path, ()), codes)
        self._codes[path] = [(of, code if of == text else old) for of, old in known]

    @staticmethod
    def _found(*paths: str) -> dict[str, list[FunctionType]]:
        from graphmend.importer.code import code_swap

        modules = [m for m in list(sys.modules.values()) if getattr(m, "__file__", None) in paths]
        return code_swap.functions_of(frozenset(paths), modules)
