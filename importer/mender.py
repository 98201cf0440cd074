"""Where a module's text is mended while it is imported, and where the results are kept."""

from __future__ import annotations

import base64
import contextlib
import gc
import marshal
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from graphmend.importer.outcome import Compiled, Elsewhere, Outcome, Texts
from graphmend.importer.text_mender import Surroundings, TextMender

if TYPE_CHECKING:
    from graphmend.importer.ahead import Ahead
    from graphmend.importer.mending_process import MendingProcess
    from graphmend.workspace.cache import Cache
    from graphmend.workspace.interpreter import Interpreter


class Mender:
    """Mends texts for the interpreter that runs, and keeps the results in the user's cache."""

    def __init__(self, unsafe: bool, folders: Sequence[Path] = (), accept: Collection[str] = ()) -> None:
        self._unsafe, self._accept = unsafe, tuple(sorted(accept))
        self._here = TextMender(unsafe, folders, self._accept)
        self._process: MendingProcess | None = None
        self._overlay = self._here.overlay
        self._around: Surroundings | None = None
        """Those of the first module whose mending was put off: they count for all."""
        self._shared: dict[str, str] = {}
        """Digests of those that were mended because of another file: they depend on what was imported, and when."""
        self._read: dict[str, dict[str, str]] = {}
        """By path: digests of the other texts in which its analysis found something."""

    def end(self) -> None:
        """Mends in this process from now on."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def begin(
        self, is_target: Callable[[str], bool], program: tuple[str, str] | None = None, later: bool = False
    ) -> None:
        """Mends in a process of its own from now on, where that can be: to be called before the program has run.

        `is_target` says of a path whether that file is to be mended; `program` is the text and the path of the script;
        with `later` modules are mended when something is compiled that comes to them.
        """
        from graphmend.importer.mending_process import begin

        self._process = begin(lambda: self._ahead(is_target, program, later))

    def _ahead(self, is_target: Callable[[str], bool], script: tuple[str, str] | None, later: bool) -> Ahead:
        from graphmend.importer.ahead import Ahead
        from graphmend.importer.upcoming import AsTraced, InImportOrder, Program

        def is_kept(text: str, path: str, texts: Texts) -> bool:
            return self.load(text, path, texts) is not None

        def keep(text: str, path: str, outcome: Outcome, read: Mapping[str, str]) -> None:
            if outcome.text is not None and outcome.code is None:
                return  # compiling it says something to the program, each time
            self._read[path] = _digests(read)
            self.store(text, path, outcome.code.code(text) if outcome.code is not None else None, outcome)

        program = Program(is_target, script)
        upcoming = AsTraced(program) if later else InImportOrder(program)
        return Ahead(self._here, is_target, is_kept, keep, upcoming, Surroundings.now())

    def expect(self, path: str, by_program: bool) -> None:
        if self._around is None:
            self._around = Surroundings.now()
        if self._process is not None:
            self._process.expect(path, self._around, by_program)

    def in_order(self, paths: Sequence[str]) -> Sequence[str]:
        if self._process is None:
            return paths
        from graphmend.importer.mending_process import Gone

        try:
            known = {path: place for place, path in enumerate(self._process.order())}
        except Gone:
            self._process = None
            return paths
        return sorted(paths, key=lambda path: known.get(path, len(known)))

    def mend(self, text: str, path: str, texts: Texts) -> Outcome:
        outcome, read = self._mended(text, path, texts)
        if outcome.text is not None:
            self._overlay[path] = outcome.text
        self._read[path] = _digests(read)
        return outcome

    def _mended(self, text: str, path: str, texts: Texts) -> tuple[Outcome, Mapping[str, str]]:
        around = self._around or Surroundings.now()
        if self._process is not None:
            from graphmend.importer.mending_process import Gone

            try:
                return self._process.mend(text, path, texts, around, self._overlay)
            except Gone:
                self._process = None
        with _collector_paused():
            return self._here.mend(text, path, texts, around)

    def load(self, text: str, path: str, texts: Texts) -> tuple[CodeType | None, Outcome] | None:
        if (stamp := self._stamp(text, path)) is None:
            return None
        try:
            data = self._cache.load(self._name(path), stamp)
            if data is None or data["digest"] != _sum(data):
                return None
            if any(_digest(texts.now(other) or "") != known for other, known in data["read"].items()):
                return None
            code = marshal.loads(base64.b64decode(data["code"])) if data["code"] else None
            elsewhere = {
                other: Elsewhere(now, mends, Compiled(of, base64.b64decode(packed)) if packed else None)
                for other, (now, mends, packed, of) in data["elsewhere"].items()
            }
        except (AttributeError, KeyError, TypeError, ValueError, EOFError):
            return None
        if data["text"] is not None:
            self._overlay[path] = data["text"]
        self._remember(elsewhere)
        return code, Outcome(data["text"], data["mends"], data["left"], elsewhere)

    def store(self, text: str, path: str, code: CodeType | None, outcome: Outcome) -> None:
        read = self._read.pop(path, {})
        if (stamp := self._stamp(text, path)) is not None:
            data = {
                "code": base64.b64encode(marshal.dumps(code)).decode() if code is not None else "",
                "text": outcome.text,
                "mends": list(outcome.mends),
                "left": list(outcome.left),
                "elsewhere": {
                    other: [mended.text, list(mended.mends), *_packed(mended.code)]
                    for other, mended in outcome.elsewhere.items()
                },
                "read": read,
            }
            self._cache.store(self._name(path), stamp, data | {"digest": _sum(data)})
        self._remember(outcome.elsewhere)

    def _remember(self, elsewhere: Mapping[str, Elsewhere]) -> None:
        """Later modules are analysed with the texts that this one has mended."""
        for path, mended in elsewhere.items():
            self._overlay[path] = mended.text
            self._shared[path] = _digest(mended.text)

    # What a result depends on

    def _name(self, path: str) -> str:
        shared = [part for item in sorted(self._shared.items()) for part in item]
        tag = f"{sys.implementation.cache_tag} {sys.flags.optimize}"
        return _digest("import", path, str(self._unsafe), ",".join(self._accept), tag, *shared)

    def _stamp(self, text: str, path: str) -> str | None:
        """Covers the text, the files around it, the versions of torch, Python and GraphMend. None: do not keep."""
        from graphmend.workspace.module_loader import package_root

        root = package_root(Path(path))
        if root.name in ("site-packages", "dist-packages"):  # others' packages do not know each other's insides
            root = next((folder for folder in Path(path).parents if folder.parent == root), root)
        around = self._cache.stamp((root,), self._interpreter)
        return _digest(text, around) if around is not None else None

    @cached_property
    def _cache(self) -> Cache:
        from graphmend.workspace.cache import Cache

        return Cache()

    @cached_property
    def _interpreter(self) -> Interpreter:
        from graphmend.workspace.interpreter import running

        return running()


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """No collection of cycles meanwhile: a mend makes many trees, which hold none, and the program that imports has
    many objects, which would be looked at again and again. That took a third of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.collect(0)
            gc.enable()


def _packed(code: Compiled | None) -> tuple[str, str]:
    return (base64.b64encode(code.data).decode(), code.of) if code is not None else ("", "")


def _sum(data: Mapping[str, Any]) -> str:
    """A digest of the texts and codes of an entry of the cache: code that is not whole must not run."""
    others = [part for _, (text, _, code, _) in sorted(data["elsewhere"].items()) for part in (text, code)]
    return _digest(data["code"], data["text"] or "", *others)


def _digests(texts: Mapping[str, str]) -> dict[str, str]:
    return {path: _digest(text) for path, text in texts.items()}


def _digest(*parts: str) -> str:
    from graphmend.workspace.cache import digest

    return digest(*parts)
