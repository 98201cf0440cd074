"""Diagnostics of files that are not open, where `diagnosticMode` is `workspace`: pulled with result ids, or pushed.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#workspace_diagnostic
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from graphmend.analysis.syntax.span import Span
from graphmend.server.analyses.workspace_check import WorkspaceCheck
from graphmend.server.diagnostics import convert_finding
from graphmend.server.diagnostics.publish import NOTHING
from graphmend.server.lsp import convert
from graphmend.server.lsp.progress import Progress
from graphmend.server.lsp.pygls_internals import Json
from graphmend.server.session import Session

#: Reports that are sent together, and the seconds that the first of them waits for the others.
_BATCH = 100
_PATIENCE = 1.0


class Workspace:
    """What the client is told of the files around."""

    def __init__(self, server: LanguageServer, session: Session) -> None:
        self._server = server
        self._session = session
        self._made: dict[str, tuple[list[dict[str, Any]], Json, str]] = {}
        self.surroundings = WorkspaceCheck(self._came, self._done, self._progress)

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
        async def pull(params: types.WorkspaceDiagnosticParams) -> Json:
            known = {previous.uri: previous.value for previous in params.previous_result_ids}
            reports: list[str] = []
            begun = time.monotonic()
            async for report in self._reports(known):
                reports.append(report)
                due = len(reports) == _BATCH or time.monotonic() - begun > _PATIENCE
                if params.partial_result_token is not None and due:
                    self._send_part(params.partial_result_token, reports)
                    begun = time.monotonic()
            if params.partial_result_token is not None and reports:
                self._send_part(params.partial_result_token, reports)
            return _report(reports)

    def of(self, path: str) -> Json:
        """The diagnostics of a file that is not open."""
        return self._of(path)[0]

    def _send_part(self, token: types.ProgressToken, reports: list[str]) -> None:
        part = Json(f'{{"token": {json.dumps(token)}, "value": {_report(reports)}}}')
        self._server.protocol.notify(types.PROGRESS, part)
        reports.clear()

    async def _reports(self, known: dict[str, str]) -> AsyncIterator[str]:
        """A report for each file with findings that is not open, and for each that has none any more."""
        left = dict(known)
        async for path in self.surroundings.each():
            uri = convert.uri_of(path)
            if self._session.documents.by_path(path) is not None:
                left.pop(uri, None)
                continue
            found, result_id = self._of(path)
            about = f'"uri": {json.dumps(uri)}, "version": null, "resultId": "{result_id}"'
            if left.pop(uri, None) == result_id:
                yield f'{{"kind": "unchanged", {about}}}'
            else:
                yield f'{{"kind": "full", {about}, "items": {found}}}'
            await asyncio.sleep(0)  # thousands of files are read here, and somebody types meanwhile
        nothing = convert.result_id(NOTHING)
        for uri, result_id in left.items():
            if result_id != nothing and self._session.documents.get(uri) is None:
                about = f'"uri": {json.dumps(uri)}, "version": null, "resultId": "{nothing}"'
                yield f'{{"kind": "full", {about}, "items": []}}'

    def _of(self, path: str) -> tuple[Json, str]:
        items = self.surroundings.findings.get(path, [])
        made = self._made.get(path)
        if made is None or made[0] is not items:
            found = self._session.client.encode(self._diagnostics(path, items))
            made = self._made[path] = items, found, convert.result_id(found)
        return made[1], made[2]

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
                    code_description=convert_finding.description(self._session, item["code"]),
                )
            )
        return found

    def _came(self, path: str) -> None:
        """Other findings are known of a file: clients that do not pull are sent them."""
        if path not in self.surroundings.findings:
            self._made.pop(path, None)
        if self._session.client.capabilities.pull_diagnostics or self._session.documents.by_path(path) is not None:
            return
        self._session.client.publish(convert.uri_of(path), None, self.of(path))

    def _done(self) -> None:
        """All folders were checked: clients that pull are to ask again."""
        if self._session.client.capabilities.pull_diagnostics:
            self._session.client.refresh()

    def _progress(self, folder: Path, stop: Callable[[], object]) -> Progress:
        shown = self._session.client.capabilities.progress
        return Progress(self._server, f"Checking {folder.name}", stop, shown=shown)


def _report(reports: Sequence[str]) -> Json:
    return Json(f'{{"items": [{", ".join(reports)}]}}')
