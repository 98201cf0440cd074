"""Mends modules while they are imported: `install(["package"])`. `graphmend run` does the same for a whole program.

Says how a text is mended (safe mends unless told otherwise, output always through `graphmend.runtime`, so that none is
lost) and where results are kept; `transforms/importer.py` is the machinery.
"""

from __future__ import annotations

import base64
import marshal
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from graphmend.transforms.importer import Importer, Note, Outcome, Report, Targets

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.project import Project
    from graphmend.analysis.settings import Settings
    from graphmend.workspace.cache import Cache
    from graphmend.workspace.interpreter import Interpreter

__all__ = ["Importer", "Report", "install"]


def install(packages: Sequence[str], unsafe: bool = False, *, folders: Iterable[Path] = ()) -> Importer:
    """From now on, mends the modules of `packages` (and those below `folders`) while they are imported.

    Modules that are imported already stay as they are. The result's `report` says what was mended.
    """
    folders = tuple(folders)
    importer = Importer(Targets(packages, folders), Mender(unsafe, folders))
    importer.install()
    return importer


class Mender:
    """Mends texts for the interpreter that runs, and keeps the results in the user's cache."""

    def __init__(self, unsafe: bool, folders: Sequence[Path] = ()) -> None:
        self._unsafe = unsafe
        self._own = tuple(folders)

    def mend(self, text: str, path: str) -> Outcome:
        from graphmend.analysis.source import Source
        from graphmend.transforms.mend import mend_all

        source = Source(text, path)
        if source.tree is None:
            return Outcome()  # importing it says so
        mended = mend_all(source, self._project, self._settings, unsafe=self._unsafe, prefer_runtime=True)
        self._project.forget(path)
        left = [_note(finding) | {"reason": reason} for finding, reason in mended.left]
        if not mended.changed:
            return Outcome(left=left)
        mends = [
            _note(finding)
            | {"rewrite": fix.rewrite, "title": fix.title, "applicability": fix.applicability, "reason": fix.reason}
            for finding, fix in mended.applied
        ]
        return Outcome(mended.source.text, mends, left)

    def load(self, text: str, path: str) -> tuple[CodeType | None, Outcome] | None:
        from graphmend.workspace.cache import digest

        if (stamp := self._stamp(text, path)) is None:
            return None
        try:
            data = self._cache.load(self._name(path), stamp)
            if data is None or data["digest"] != digest(data["code"]):
                return None
            code = marshal.loads(base64.b64decode(data["code"])) if data["code"] else None
            return code, Outcome("" if code else None, data["mends"], data["left"])
        except (KeyError, TypeError, ValueError, EOFError):
            return None

    def store(self, text: str, path: str, code: CodeType | None, outcome: Outcome) -> None:
        from graphmend.workspace.cache import digest

        if (stamp := self._stamp(text, path)) is None:
            return
        packed = base64.b64encode(marshal.dumps(code)).decode() if code is not None else ""
        data = {"code": packed, "digest": digest(packed)}
        self._cache.store(self._name(path), stamp, data | {"mends": list(outcome.mends), "left": list(outcome.left)})

    # What a result depends on

    def _name(self, path: str) -> str:
        from graphmend.workspace.cache import digest

        return digest("import", path, str(self._unsafe), str(sys.implementation.cache_tag), str(sys.flags.optimize))

    def _stamp(self, text: str, path: str) -> str | None:
        """Covers the text, the files around it, the versions of torch, Python and GraphMend. None: do not keep."""
        from graphmend.workspace.cache import digest
        from graphmend.workspace.environment import package_root

        root = package_root(Path(path))
        if root.name in ("site-packages", "dist-packages"):  # others' packages do not know each other's insides
            root = next((folder for folder in Path(path).parents if folder.parent == root), root)
        around = self._cache.stamp((root,), self._interpreter)
        return digest(text, around) if around is not None else None

    @cached_property
    def _cache(self) -> Cache:
        from graphmend.workspace.cache import Cache

        return Cache()

    @cached_property
    def _interpreter(self) -> Interpreter:
        from graphmend.workspace.interpreter import Interpreter

        return Interpreter(Path(sys.prefix))

    @cached_property
    def _project(self) -> Project:
        from graphmend.analysis.project import Project
        from graphmend.workspace.environment import Environment

        first, *others = [*self._own, *(Path(folder or ".") for folder in sys.path)]
        return Project(Environment(first, others, self._interpreter))

    @cached_property
    def _settings(self) -> Settings:
        from graphmend.analysis.settings import Settings

        loaded = getattr(sys.modules.get("torch"), "__version__", None)
        minor = ".".join(str(loaded).split(".")[:2]) if loaded else self._interpreter.torch_version
        return Settings(torch_version=minor)


def _note(finding: Finding) -> Note:
    place: dict[str, Any] = {"row": finding.span.line, "column": finding.span.column + 1}
    return {"code": finding.code, "name": finding.name, "message": finding.message, **place}
