"""One conversation with one client: what it can do, what it set, which documents it has open, what is known about them.

The features (a file each) ask the session; the session asks the analyses and the check. Its work happens on the event
loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import traceback
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lsprotocol import types

from graphmend.analysis.finding import Finding
from graphmend.analysis.syntax.source import Encoding, LineIndex
from graphmend.analysis.syntax.span import Span
from graphmend.server.analyses.document_analysis import Analyses, Check
from graphmend.server.analyses.folder_settings import Folders
from graphmend.server.analyses.workspace_check import WorkspaceCheck
from graphmend.server.documents.open_documents import Document, Documents
from graphmend.server.lsp import convert
from graphmend.server.lsp.client import Client
from graphmend.server.verification.checks import Verification

if TYPE_CHECKING:
    from graphmend.dynamo.merge import Verdict
    from graphmend.server.lsp.language_server import Server
    from graphmend.workspace.config import Configuration

CONFIGURATION_FILES = ("pyproject.toml", "graphmend.toml")

log = logging.getLogger(__name__)


class ShownFinding(NamedTuple):
    """A finding as the user sees it: where it stands now, and what TorchDynamo said about it."""

    finding: Finding
    verdict: Verdict | None = None
    says: str = ""


class Session:
    """What the server knows while one client is connected."""

    def __init__(self, server: Server, check: Check | None = None) -> None:
        self.client = Client(server)
        self.documents = Documents()
        self.folders = Folders()
        self.trusted = False
        self.analyses = Analyses(self.documents, lambda d: self.folders.scope(d.path), self._analysis_failed, check)
        #: Told when what is shown for a document, or for all of them, changed without an edit.
        self.changed: Callable[[Document], None]
        self.all_changed: Callable[[], None]
        #: The files that are not open.
        self.workspace: WorkspaceCheck
        #: The check on save.
        self.check: Callable[[Document], Coroutine[Any, Any, None]]
        #: Shows what an earlier session's checks found in a document.
        self.recall: Callable[[Document], Coroutine[Any, Any, None]]
        self.verification = Verification(self.folders, self._texts)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._failures: set[str] = set()

    async def current(self, document: Document) -> list[ShownFinding]:
        """What is to be shown for the document's newest version."""
        host = document.host
        configuration = self.configuration(host)
        if not configuration["enable"]:
            return []
        if configuration["run"] == "onSave" and self.analyses.knows(host):
            analysis = self.analyses.shown(host)
        else:
            analysis = await self.analyses.current(host)
        checked = self.verification.checked(host)
        findings = [*analysis.findings, *checked.findings(host)]
        path = Path(host.path)
        hidden = {code for code in {f.code for f in findings} if configuration.hides(code, path)}
        shown = []
        for finding in findings:
            span = document.inside(finding.span)
            if span is not None and finding.code not in hidden:
                here = finding if span is finding.span else replace(finding, span=span)
                shown.append(ShownFinding(here, *checked.says(host, finding)))
        return shown

    def model(self, document: Document) -> str | None:
        """The language model that may be asked about a document; None where none is set, or it may not."""
        configuration = self.configuration(document)
        if not (configuration["model.endpoint"] and configuration["model.name"] and configuration["model-allowed"]):
            return None
        if self.verification.refusal(document, trusted=self.trusted) is not None:
            return None
        return str(configuration["model.name"])

    def place(self, path: str, span: Span) -> tuple[str, LineIndex, Span] | None:
        """A place in any file as the client knows it: (uri, lines, span); None where the file cannot be read."""
        document = self.documents.by_path(path)
        for part in document.parts if document else ():
            if (inside := part.inside(span)) is not None:
                return part.uri, part.text, inside
        lines = self.lines_of(path)
        return None if lines is None else (convert.uri_of(path), lines, span)

    def lines_of(self, path: str) -> LineIndex | None:
        """The lines of any file, as the client has it open or as it is on disk; None where it cannot be read."""
        document = self.documents.by_path(path)
        if document is not None:
            return document.text
        from graphmend.workspace import files

        try:
            return LineIndex(files.read(path).text)
        except files.FileProblem:
            return None

    @property
    def encoding(self) -> Encoding:
        encoding: Encoding = self.client.encoding
        return encoding

    def opened(self, document: Document) -> None:
        self.documents.open(document)
        self.folders.changed(document.path, document.text.text)
        self.spawn(self.recall(document))

    def closed(self, uri: str) -> Document | None:
        document = self.documents.close(uri)
        if document is not None:
            self.folders.changed(document.path, None)
            self.analyses.forget(document)
            self.verification.forget(document)
        return document

    async def saved(self, document: Document) -> None:
        """A document was saved: what waits for that is done now."""
        if self.configuration(document)["run"] == "onSave":
            await self.analyses.current(document)
            self.changed(document)
        if self.folders.changed(document.path, document.text.text):
            self.workspace.expire()
            for other in self.documents:
                if other is not document:
                    self.analyses.expire(other)
                    self.changed(other)
        await self.check(document)

    def files_changed(self, paths: Iterable[str]) -> None:
        """Files changed on disk: any document's findings may. Open files are left out, their edits are known."""
        changed = [path for path in paths if self.documents.by_path(path) is None]
        if not changed:
            return
        if any(os.path.basename(path) in CONFIGURATION_FILES for path in changed):
            self.folders.forget()
        self.folders.forget_modules()
        self.workspace.expire()
        self.expire()

    def expire(self) -> None:
        """Something that every document depends on changed."""
        for document in self.documents:
            self.analyses.expire(document)
        self.all_changed()

    def trust(self, trusted: bool) -> None:
        """The client changed its mind about the workspace."""
        self.trusted = trusted
        if not trusted:
            self.verification.cancel_all()
            return
        for document in self.documents:
            self.spawn(self.recall(document))

    async def close(self) -> None:
        """The conversation is over: stop whatever still runs."""
        for task in list(self._tasks):
            task.cancel()
        await self.verification.close()
        await self.workspace.close()

    def _texts(self) -> dict[str, str]:
        """The texts of the open files by path, saved or not."""
        return {d.path: d.runnable(d.text.text) for d in self.documents if os.path.isabs(d.path)}

    def configuration(self, document: Document) -> Configuration:
        return self.folders.configuration(document.host.path)

    def spawn(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Work that nobody awaits; its failure is logged."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s", "".join(traceback.format_exception(error)))

    def _analysis_failed(self, document: Document, error: BaseException, text: str) -> None:
        """Logs what reproduces the failure, once: what fails at one keystroke fails at the next. `text` is what failed,
        which may have been edited since."""
        trace = "".join(traceback.format_exception(error))
        if trace in self._failures:
            return
        kept = _save(text)
        place = f"{document.uri} (version {document.version})"
        log.error("the analysis of %s failed; its text is in %s\n%s", place, kept, trace)
        if not self._failures:
            self.client.show(
                types.MessageType.Warning, f"GraphMend could not analyse {document.path}; the log says why."
            )
        self._failures.add(trace)


def _save(text: str) -> str:
    import tempfile

    try:
        with tempfile.NamedTemporaryFile("wb", prefix="graphmend-failed-", suffix=".py", delete=False) as file:
            file.write(text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        return f"no file ({error})"
    return file.name
