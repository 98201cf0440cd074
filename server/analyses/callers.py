"""What the files that import an open document find in it: they may compile it, or call it from what is compiled."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import Source
from graphmend.server.analyses.scope import Scope
from graphmend.server.analyses.worker_thread import WorkerThread
from graphmend.server.documents.open_documents import Document
from graphmend.server.documents.position_mapping import map_span

if TYPE_CHECKING:
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.settings import Settings

#: with more files than these, checking them would take longer than anybody waits
_MOST = 64
#: a document is shown without what its callers say after so many seconds; the next analysis has it
_PATIENCE = 3.0


class _Said(NamedTuple):
    """What the callers found in one state of a document."""

    stamp: int
    epoch: int
    findings: tuple[Finding, ...]


class FromCallers(NamedTuple):
    """What the callers found in one text of a document, and a finding for each function that they compile."""

    findings: tuple[Finding, ...] = ()
    compiled: Mapping[str, Finding] = MappingProxyType({})


class Callers:
    """For each open document, the findings of its importers' checks, as of when other files were last seen to change.
    They move with its edits."""

    def __init__(self, thread: WorkerThread) -> None:
        self._thread = thread
        self._said: dict[Document, _Said] = {}
        self._asked: dict[Document, asyncio.Task[None]] = {}

    def forget(self, document: Document) -> None:
        """The document is closed."""
        self._said.pop(document, None)

    async def ask(self, document: Document, state: tuple[int, int], scope: Scope) -> FromCallers:
        """What the files that import a document find in it. They are checked if one of them or the settings changed
        since that was done. `state` is the stamp of the document's text and the epoch of what is around it."""
        (stamp, epoch), known = state, self._said.get(document)
        project = await self._thread.run(lambda: scope.project) if known is None or known.epoch != epoch else None
        if project is not None:
            if document not in self._asked:
                work = self._check(document, epoch, project, scope.settings)
                self._asked[document] = asyncio.create_task(work)
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._asked[document]), _PATIENCE)
        return self._findings(document, stamp)

    async def _check(self, document: Document, epoch: int, project: Project, settings: Settings) -> None:
        from graphmend.workspace.importers import all_importers

        stamp, found = document.stamp, dict[tuple[object, str], Finding]()
        try:
            paths = await asyncio.to_thread(all_importers, [Path(document.path)], _MOST)
            for path in paths if len(paths) <= _MOST else ():
                for finding in await self._thread.run(partial(_found, path, document.path, project, settings)):
                    place = finding.span, finding.code
                    if place not in found or found[place].region == "assumed":
                        found[place] = finding
            self._said[document] = _Said(stamp, epoch, tuple(found.values()))
        finally:
            del self._asked[document]

    def _findings(self, document: Document, stamp: int) -> FromCallers:
        """What the callers found, where it stands in a newer text; without what an edit replaced."""
        said = self._said.get(document)
        moves = document.moves(said.stamp, stamp) if said is not None else None
        if said is None or moves is None:
            return FromCallers()
        placed = ((finding, map_span(finding.span, moves)) for finding in said.findings)
        moved = tuple(replace(finding, span=span) for finding, span in placed if span is not None)
        return FromCallers(moved, {f.function: f for f in said.findings if f.region == "compiled"})


def _found(path: Path, document: str, project: Project, settings: Settings) -> tuple[Finding, ...]:
    """In the thread: what the check of a file finds in a document."""
    from graphmend.analysis.check import check

    name = project.loader.module_name(str(path))
    found = project.loader.find(name) if name else None
    if found is None:
        return ()
    result = check(Source(found[1], str(path)), project, settings)
    findings = result.elsewhere.get(document, ())
    result.close()
    return findings


def joined(own: Iterable[Finding], callers: FromCallers) -> tuple[Finding, ...]:
    """The findings of a document's own analysis and those of its callers; where both found one, what is compiled for
    certain. In a function that a caller compiles, so is what the caller's findings do not have yet."""
    found = {(finding.span, finding.code): finding for finding in own}
    for finding in callers.findings:
        mine = found.get((finding.span, finding.code))
        if mine is None or mine.region == "assumed":
            found[finding.span, finding.code] = finding
    for place, finding in found.items():
        by = callers.compiled.get(finding.function)
        if finding.region == "assumed" and by is not None:
            found[place] = replace(
                finding, region="compiled", evidence=(*by.evidence[:1], *finding.evidence[1:]), related=by.related
            )
    return tuple(sorted(found.values(), key=lambda finding: (finding.span, finding.code)))
