"""Diagnostics of files that are not open, where `diagnosticMode` is `workspace`: pulled with result ids, or pushed.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#workspace_diagnostic
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.analysis.finding import Span
from graphmend.server import convert, diagnostics
from graphmend.server.protocol import Json
from graphmend.server.session import Session
from graphmend.server.surroundings import Surroundings

T = TypeVar("T")

_BATCH = 100

Report = types.WorkspaceFullDocumentDiagnosticReport | types.WorkspaceUnchangedDocumentDiagnosticReport


class Workspace:
    """What the client is told of the files around."""

    def __init__(self, server: LanguageServer, session: Session) -> None:
        self._server = server
        self._session = session
        self._made: dict[str, tuple[list[dict[str, Any]], list[types.Diagnostic], str]] = {}
        self._published: set[str] = set()
        self.surroundings = Surroundings(self._changed)

    def configure(self) -> None:
        """Settings or folders changed."""
        wanted = {}
        for folder in self._session.folders:
            if folder.path is None:
                continue
            configuration = folder.configuration(folder.path / "any.py")
            if configuration["enable"] and configuration["diagnostic-mode"] == "workspace":
                wanted[folder.path] = folder.as_arguments()
        self.surroundings.watch(wanted)

    def register(self) -> None:
        @self._server.feature(types.WORKSPACE_DIAGNOSTIC)
        async def pull(params: types.WorkspaceDiagnosticParams) -> types.WorkspaceDiagnosticReport:
            await self.surroundings.ready()
            reports = list(self._reports({p.uri: p.value for p in params.previous_result_ids}))
            if params.partial_result_token is None:
                return types.WorkspaceDiagnosticReport(items=reports)
            for batch in _batches(reports, _BATCH):
                partial = types.WorkspaceDiagnosticReportPartialResult(items=batch)
                self._server.protocol.notify(
                    types.PROGRESS, types.ProgressParams(token=params.partial_result_token, value=partial)
                )
            return types.WorkspaceDiagnosticReport(items=[])

    def of(self, path: str) -> Json:
        """The diagnostics of a file that is not open."""
        return self._session.client.encode(self._of(path)[0])

    def _reports(self, known: dict[str, str]) -> Iterable[Report]:
        """A report for each file with findings that is not open, and for each that has none any more."""
        left = dict(known)
        for path in self.surroundings.findings:
            uri = convert.uri_of(path)
            if self._session.documents.by_path(path) is not None:
                left.pop(uri, None)
                continue
            found, result_id = self._of(path)
            if left.pop(uri, None) == result_id:
                yield types.WorkspaceUnchangedDocumentDiagnosticReport(uri=uri, result_id=result_id)
            else:
                yield types.WorkspaceFullDocumentDiagnosticReport(uri=uri, items=found, result_id=result_id)
        nothing = self._result_id([])
        for uri, result_id in left.items():
            if result_id != nothing and self._session.documents.get(uri) is None:
                yield types.WorkspaceFullDocumentDiagnosticReport(uri=uri, items=[], result_id=nothing)

    def _of(self, path: str) -> tuple[list[types.Diagnostic], str]:
        items = self.surroundings.findings.get(path, [])
        made = self._made.get(path)
        if made is None or made[0] is not items:
            found = self._diagnostics(path, items)
            made = self._made[path] = items, found, self._result_id(found)
        return made[1], made[2]

    def _result_id(self, found: list[types.Diagnostic]) -> str:
        return convert.result_id(self._session.client.encode(found))

    def _diagnostics(self, path: str, items: list[dict[str, Any]]) -> list[types.Diagnostic]:
        lines = self._session.lines_of(path)
        if lines is None:  # gone since it was checked
            return []
        found = []
        for item in items:
            begin, end = item["location"], item["end_location"]
            span = Span(begin["row"], begin["column"] - 1, end["row"], end["column"] - 1)
            found.append(
                types.Diagnostic(
                    range=convert.range_of(lines, span, self._session.encoding),
                    message=item["message"],
                    severity=convert.SEVERITIES.get(item.get("severity", ""), types.DiagnosticSeverity.Information),
                    source=convert.SOURCE,
                    code=item["code"],
                    code_description=diagnostics.description(self._session, item["code"]),
                )
            )
        return found

    def _changed(self) -> None:
        """The files around were checked again."""
        self._made = {path: made for path, made in self._made.items() if path in self.surroundings.findings}
        if self._session.client.capabilities.pull_diagnostics:
            self._session.client.refresh()
            return
        now = set(self.surroundings.findings)
        for path in self._published | now:
            if self._session.documents.by_path(path) is None:
                self._session.client.publish(convert.uri_of(path), None, self.of(path))
        self._published = now


def _batches(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    return (items[begin : begin + size] for begin in range(0, len(items), size))
