"""How a module's text is mended while it is imported, and where the results are kept.

Safe mends unless told otherwise; output always through `graphmend.runtime`, so that none is lost.
"""

from __future__ import annotations

import base64
import marshal
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING

from graphmend.importer.hook import Elsewhere, Note, Outcome, Texts

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings
    from graphmend.analysis.syntax.source import Source
    from graphmend.importer.line_numbers import Places
    from graphmend.workspace.cache import Cache
    from graphmend.workspace.interpreter import Interpreter


class Mender:
    """Mends texts for the interpreter that runs, and keeps the results in the user's cache."""

    def __init__(self, unsafe: bool, folders: Sequence[Path] = (), accept: Collection[str] = ()) -> None:
        self._unsafe, self._accept = unsafe, tuple(sorted(accept))
        self._own = tuple(folders)
        self._overlay: dict[str, str] = {}
        """Texts that run in place of the files', by path; the analysis reads them."""
        self._shared: dict[str, str] = {}
        """Digests of those that were mended because of another file: they depend on what was imported, and when."""
        self._read: dict[str, dict[str, str]] = {}
        """By path: digests of the other texts in which its analysis found something."""

    def mend(self, text: str, path: str, texts: Texts) -> Outcome:
        from graphmend.analysis.syntax.source import Source
        from graphmend.transforms.mend import mend_all

        source = Source(text, path)
        if source.tree is None:
            return Outcome()  # importing it says so
        around = _Others(texts, self._project, self._overlay)
        mended = mend_all(
            source,
            self._project,
            self._settings,
            unsafe=self._unsafe,
            prefer_runtime=True,
            others=around,
            accept=self._accept,
        )
        self._read[path] = {other: _digest(text) for other, text in around.read.items()}
        if mended.source is not source:
            self._overlay[path] = mended.source.text
            self._project.forget(path)
        else:
            self._project.release_all_trees()
        notes = _Notes(texts)
        left = [notes.note(finding, mended.looked_at) | {"reason": reason} for finding, reason in mended.left]
        mends: dict[str, list[Note]] = {}
        for finding, fix, seen in mended.applied:
            what = {"rewrite": fix.rewrite, "title": fix.title, "applicability": fix.applicability}
            says = {"reason": fix.reason, "differences": list(dict.fromkeys(each.kind for each in fix.differences))}
            mends.setdefault(finding.path, []).append(notes.note(finding, seen) | what | says)
        own = mends.pop(path, [])
        elsewhere = {other: Elsewhere(self._overlay[other], made) for other, made in mends.items()}
        return Outcome(mended.source.text if mended.source is not source else None, own, left, elsewhere)

    def load(self, text: str, path: str, texts: Texts) -> tuple[CodeType | None, Outcome] | None:
        if (stamp := self._stamp(text, path)) is None:
            return None
        try:
            data = self._cache.load(self._name(path), stamp)
            if data is None or data["digest"] != _digest(data["code"], data["text"] or ""):
                return None
            if any(_digest(texts.now(other) or "") != known for other, known in data["read"].items()):
                return None
            code = marshal.loads(base64.b64decode(data["code"])) if data["code"] else None
            elsewhere = {other: Elsewhere(*pair) for other, pair in data["elsewhere"].items()}
        except (AttributeError, KeyError, TypeError, ValueError, EOFError):
            return None
        if data["text"] is not None:
            self._overlay[path] = data["text"]
        self._remember(elsewhere)
        return code, Outcome(data["text"], data["mends"], data["left"], elsewhere)

    def store(self, text: str, path: str, code: CodeType | None, outcome: Outcome) -> None:
        read = self._read.pop(path, {})
        if (stamp := self._stamp(text, path)) is not None:
            packed = base64.b64encode(marshal.dumps(code)).decode() if code is not None else ""
            data = {
                "code": packed,
                "text": outcome.text,
                "digest": _digest(packed, outcome.text or ""),
                "mends": list(outcome.mends),
                "left": list(outcome.left),
                "elsewhere": {other: list(mended) for other, mended in outcome.elsewhere.items()},
                "read": read,
            }
            self._cache.store(self._name(path), stamp, data)
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

    @cached_property
    def _project(self) -> Project:
        from graphmend.analysis.program.project import Project
        from graphmend.workspace.module_loader import ModuleLoader

        first, *others = [*self._own, *(Path(folder or ".") for folder in sys.path)]
        loader = ModuleLoader(first, others, self._interpreter, self._overlay)
        return Project(loader, lean=True, is_library=not self._own)

    @cached_property
    def _settings(self) -> Settings:
        from graphmend.analysis.settings import Settings

        loaded = getattr(sys.modules.get("torch"), "__version__", None)
        minor = ".".join(str(loaded).split(".")[:2]) if loaded else self._interpreter.torch_version
        return Settings(torch_version=minor)


class _Others:
    """The other modules' texts as they run, for the mends of one: it may replace them."""

    def __init__(self, texts: Texts, project: Project, overlay: dict[str, str]) -> None:
        self._texts, self._project, self._overlay = texts, project, overlay
        self.read: dict[str, str] = {}
        """The texts that were asked for, as they were before."""

    def source(self, path: str) -> Source | None:
        from graphmend.analysis.syntax.source import Source

        text = self._overlay.get(path) if path in self.read else self._texts.now(path)
        if text is None:
            return None
        self.read.setdefault(path, text)
        return Source(text, path)

    def replace(self, source: Source) -> None:
        self._overlay[source.path] = source.text
        self._project.forget(source.path)


class _Notes:
    """Findings as JSON, in the lines of the files: each round of mends sees a text of its own."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._places: dict[str, Places] = {}

    def note(self, finding: Finding, text: str) -> Note:
        """A finding that was made in `text`."""
        from graphmend.importer.line_numbers import Places

        row, column = finding.span.line, finding.span.column + 1
        if finding.path not in self._places:
            original = self._texts.original(finding.path)
            self._places[finding.path] = Places(text if original is None else original)
        row, column = self._places[finding.path].original(text, row, column)
        return {"code": finding.code, "name": finding.name, "message": finding.message, "row": row, "column": column}


def _digest(*parts: str) -> str:
    from graphmend.workspace.cache import digest

    return digest(*parts)
