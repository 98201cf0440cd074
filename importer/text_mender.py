"""Mends the text of a module for the interpreter that runs; keeps nothing on disk.

Safe mends unless told otherwise; output always through `graphmend.runtime`, so that none is lost.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from graphmend.importer.outcome import Elsewhere, Note, Outcome, Texts

if TYPE_CHECKING:
    from graphmend.analysis.finding import Finding
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings
    from graphmend.analysis.syntax.source import Source
    from graphmend.importer.code.line_numbers import Places
    from graphmend.importer.files_read import FilesRead

#: the oldest torch and Python with which the runtime captures sizes
CAPTURES_FROM, CAPTURES_FROM_PYTHON = (2, 13), (3, 11)


class Surroundings(NamedTuple):
    """What of the program decides how its modules are read."""

    search: tuple[str, ...]
    """Where it looks for modules."""
    torch: str | None
    """The version of the torch that it has loaded."""

    @classmethod
    def now(cls) -> Surroundings:
        loaded = getattr(sys.modules.get("torch"), "__version__", None)
        return cls(tuple(map(os.path.abspath, sys.path)), None if loaded is None else str(loaded))

    @property
    def torch_version(self) -> str | None:
        """The minor version of the loaded torch, else of the one that would be loaded."""
        from graphmend.workspace.interpreter import running

        return ".".join(self.torch.split(".")[:2]) if self.torch else running().torch_version


class TextMender:
    """Mends one text after the other; those that it has mended are what the next ones are read with."""

    def __init__(self, unsafe: bool, folders: Sequence[Path] = (), accept: Collection[str] = ()) -> None:
        self._unsafe, self._accept = unsafe, accept
        self._own = tuple(folders)
        self.overlay: dict[str, str] = {}
        """Texts that run in place of the files', by path; the analysis reads them."""
        self._around = Surroundings((), None)
        self._loader: FilesRead | None = None

    def mend(
        self,
        text: str,
        path: str,
        texts: Texts,
        around: Surroundings,
        go_on: Callable[[], None] = lambda: None,
    ) -> tuple[Outcome, Mapping[str, str]]:
        """What mending gave, and the other texts in which its analysis found something, as they were before.

        `go_on` is called between the rounds; what it raises ends the work, of which the overlay may hold some then.
        """
        from graphmend.analysis.syntax.source import Source
        from graphmend.transforms.legality.context import hidden_imports
        from graphmend.transforms.mend import mend_all

        if not self._around.search:  # one project serves all: those of the first module
            self.begin(around)
        source = Source(text, path)
        if source.tree is None:
            return Outcome(), {}  # importing it says so
        others = _Others(texts, self.project, self.overlay)

        def wanted(_: Source, findings: Sequence[Finding]) -> Sequence[Finding]:
            go_on()
            return findings

        with hidden_imports():
            mended = mend_all(
                source,
                self.project,
                self._settings,
                unsafe=self._unsafe,
                prefer_runtime=True,
                others=others,
                wanted=wanted,
                accept=self._accept,
                captures=self._captures,
                late=True,
            )
        if mended.source is not source:
            self.overlay[path] = mended.source.text
            self.project.forget(path)
        else:
            self.project.release_all_trees()
        notes = _Notes(texts)
        left = [notes.note(finding, mended.looked_at) | {"reason": reason} for finding, reason in mended.left]
        mends: dict[str, list[Note]] = {}
        for finding, fix, seen in mended.applied:
            what = {"rewrite": fix.rewrite, "title": fix.title, "applicability": fix.applicability}
            says = {"reason": fix.reason, "differences": list(dict.fromkeys(each.kind for each in fix.differences))}
            mends.setdefault(finding.path, []).append(notes.note(finding, seen) | what | says)
        own = mends.pop(path, [])
        elsewhere = {other: Elsewhere(self.overlay[other], made) for other, made in mends.items()}
        new = mended.source.text if mended.source is not source else None
        return Outcome(new, own, left, elsewhere), others.read

    def begin(self, around: Surroundings) -> None:
        """Reads all modules with these surroundings from now on; what was read with others is not known any more."""
        self._around, self._loader = around, None
        for known in ("project", "_settings", "_captures"):
            self.__dict__.pop(known, None)

    def forget(self, paths: Iterable[str]) -> None:
        """Other texts are in these files, or in place of them, than were read."""
        if self._loader is not None:
            self.project.forget(*paths)

    def changed(self) -> list[str]:
        """The files that are not any more what was read from them, told once."""
        return self._loader.changed() if self._loader is not None else []

    @cached_property
    def project(self) -> Project:
        """What is known of all modules; where they lie is known once the first one is mended."""
        from graphmend.analysis.program.project import Project
        from graphmend.importer.files_read import FilesRead
        from graphmend.workspace.interpreter import running
        from graphmend.workspace.module_loader import ModuleLoader

        first, *others = [*self._own, *map(Path, self._around.search)]
        self._loader = FilesRead(ModuleLoader(first, others, running(), self.overlay))
        return Project(self._loader, lean=True, is_library=not self._own)

    @cached_property
    def _captures(self) -> bool:
        """Will the program keep sizes in the graph (`runtime/switches.py`)?"""
        from graphmend.transforms.torch_versions import minor

        found = minor(self._around.torch_version or "")
        return found is not None and found >= CAPTURES_FROM and sys.version_info >= CAPTURES_FROM_PYTHON

    @cached_property
    def _settings(self) -> Settings:
        from graphmend.analysis.settings import Settings

        return Settings(torch_version=self._around.torch_version, assume_compiled="functions")


class _Others:
    """The other modules' texts as they run, for the mends of one: it may replace them."""

    def __init__(self, texts: Texts, project: Project, overlay: dict[str, str]) -> None:
        self._texts, self.project, self._overlay = texts, project, overlay
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
        self.project.forget(source.path)


class _Notes:
    """Findings as JSON, in the lines of the files: each round of mends sees a text of its own."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._places: dict[str, Places] = {}

    def note(self, finding: Finding, text: str) -> Note:
        """A finding that was made in `text`."""
        from graphmend.importer.code.line_numbers import Places

        row, column = finding.span.line, finding.span.column + 1
        if finding.path not in self._places:
            original = self._texts.original(finding.path)
            self._places[finding.path] = Places(text if original is None else original)
        row, column = self._places[finding.path].original(text, row, column)
        return {"code": finding.code, "name": finding.name, "message": finding.message, "row": row, "column": column}
