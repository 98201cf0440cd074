"""The modules that run: their codes, and how another code takes the place of one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import CodeType, FunctionType


class LoadedModules:
    """By path: the texts of the files that were loaded, and the codes that were run, of mended texts perhaps."""

    def __init__(self) -> None:
        self._codes: dict[str, list[tuple[str, CodeType]]] = {}
        self._newest: dict[str, dict[CodeType, CodeType]] = {}
        """By path: what functions get in place of the code that they have, since the file was loaded last."""
        self._old: set[int] = set()
        """The ids of codes that another one takes the place of."""
        self._put_off: set[str] | None = None
        """The files whose functions get their code later, together."""

    def __contains__(self, path: str) -> bool:
        return path in self._codes

    def add(self, path: str, text: str, code: CodeType) -> None:
        self._newest.pop(path, None)  # a function that stays as it was in a new text may be mended otherwise
        self._codes.setdefault(path, []).append((text, code))

    @contextlib.contextmanager
    def together(self) -> Iterator[set[str]]:
        """All that is replaced meanwhile gets its code at the end: functions that other threads have made by then as
        well. To look for them goes through all objects there are. Yields the paths of what is replaced.
        """
        paths: set[str] = set()
        self._put_off = paths
        try:
            yield paths
        finally:
            self._put_off = None
            self._swap(*paths)

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
        self._old |= set(map(id, codes))
        before = self._newest.get(path, {})
        self._newest[path] = {old: codes.get(now, now) for old, now in before.items()} | codes
        self._codes[path] = [(of, code if of == text else old) for of, old in known]
        if self._put_off is not None:
            self._put_off.add(path)
        else:
            self._swap(path)

    def ran(self, path: str) -> None:
        """The module of a file has run to its end: it may have been mended in the middle of that."""
        if self._newest.get(path):
            self._swap(path)

    def renew(self, function: FunctionType) -> None:
        """Gives a function its code that takes the place of the one it has: code that ran before may have made it."""
        if id(function.__code__) in self._old:  # to look a code up takes long
            from graphmend.importer.code import code_swap

            code_swap.swap([function], self._newest.get(function.__code__.co_filename, {}))

    def _swap(self, *paths: str) -> None:
        from graphmend.importer.code import code_swap

        functions = code_swap.functions_of(paths) if paths else {}
        for path, found in functions.items():
            code_swap.swap(found, self._newest[path])
