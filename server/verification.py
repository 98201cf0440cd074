"""The check with TorchDynamo: whether it may run, one for each document at a time, and what it leaves behind.

All of the user's code runs in the worker's processes (`dynamo.service`). Knows reports and findings, and no protocol.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend.analysis.finding import Finding
from graphmend.server.analyses import Analysis
from graphmend.server.documents import Document
from graphmend.server.moves import move

if TYPE_CHECKING:
    from graphmend.dynamo.merge import Verdict
    from graphmend.dynamo.report import Report
    from graphmend.dynamo.service import Service
    from graphmend.dynamo.targets import Request
    from graphmend.server.folders import Folders
    from graphmend.workspace.interpreter import Interpreter


@dataclass(frozen=True)
class Checked:
    """What a check said about one document, whose text was then at `stamp`."""

    stamp: int
    report: Report
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    only_dynamo: tuple[tuple[Finding, str], ...] = ()
    """GM9 findings, each with the text of its line."""

    @property
    def where(self) -> str:
        """The torch and the device of the check."""
        devices = dict.fromkeys(target.device for target in self.report.targets if target.device)
        return ", ".join([f"torch {self.report.torch.partition('+')[0]}", *devices])

    def findings(self, document: Document) -> list[Finding]:
        """The breaks that only Dynamo saw, where they are now; one whose line was edited is gone."""
        moves = document.moves(self.stamp)
        kept = []
        for finding, text in self.only_dynamo if moves is not None else ():
            span = move(finding.span, moves or ())
            if span is not None and document.text.line(span.line - 1).strip() == text:
                kept.append(replace(finding, span=span))
        return kept

    def says(self, finding: Finding) -> tuple[Verdict | None, str]:
        """The verdict on a finding, and in a few words."""
        verdict = self.verdicts.get(finding.key)
        if verdict is None:
            return None, ""
        if verdict.state == "not reached":
            return verdict, "not reached by the check"
        return verdict, f"{verdict.state} by TorchDynamo, {self.where}"


class Verification:
    """The checks of one session."""

    def __init__(self, folders: Folders, texts: Callable[[], Mapping[str, str]]) -> None:
        self._folders = folders
        self._texts = texts
        self._checked: dict[Document, Checked] = {}
        self._running: dict[Document, asyncio.Task[Report]] = {}
        self._turn = asyncio.Lock()  # one at a time: a "save all" starts no crowd of processes
        self._made: Service | None = None

    def checked(self, document: Document) -> Checked | None:
        return self._checked.get(document)

    def is_running(self, document: Document) -> bool:
        return document in self._running

    def refusal(self, document: Document, *, trusted: bool) -> str | None:
        """Why no check of a document may run; None where one may."""
        if not trusted:
            return "nothing of this workspace is run until it is trusted"
        if self._folders.configuration(document.path)["verify.mode"] == "off":
            return "checks are switched off (verify.mode)"
        if not os.path.isabs(document.path):
            return "only a file can be checked: save it first"
        return None

    async def run(self, document: Document, names: tuple[str, ...], tell: Callable[[str], None]) -> Report | None:
        """The report of a check; None where it was cancelled. A newer check of a document ends the one before it."""
        self.cancel(document)
        task = asyncio.ensure_future(self._in_turn(self._request(document, names), tell))
        self._running[document] = task
        try:
            await asyncio.wait({task})
        finally:
            if self._running.get(document) is task:
                del self._running[document]
            task.cancel()  # whoever asked was cancelled; no effect on a check that is done
        return None if task.cancelled() else task.result()

    def keep(self, document: Document, analysis: Analysis, report: Report, text: str) -> None:
        """Takes a report in. `analysis` is of the text that was checked."""
        from graphmend.analysis.source import Source
        from graphmend.analysis.suppress import suppressions
        from graphmend.dynamo.merge import merge

        source = Source(text, document.path)
        merged = merge(source, analysis.findings, report)
        comments = suppressions(source)
        kept = [f for f in merged.only_dynamo if not any(c.covers(f) and c.names(f.code) for c in comments)]
        self._checked[document] = Checked(
            analysis.stamp,
            report,
            {finding.key: verdict for finding, verdict in zip(analysis.findings, merged.verdicts, strict=True)},
            tuple((finding, source.lines.line(finding.span.line - 1).strip()) for finding in kept),
        )

    def cancel(self, document: Document) -> None:
        task = self._running.get(document)
        if task is not None:
            task.cancel()

    def cancel_all(self) -> None:
        for task in self._running.values():
            task.cancel()

    def forget(self, document: Document) -> None:
        """The document is closed."""
        self.cancel(document)
        self._checked.pop(document, None)

    async def close(self) -> None:
        self.cancel_all()
        if self._made is not None:
            await self._made.close()

    def _in_turn(self, request: Request, tell: Callable[[str], None]) -> Coroutine[Any, Any, Report]:
        async def check() -> Report:
            async with self._turn:
                return await self._service.check(request, tell)

        return check()

    @property
    def _service(self) -> Service:
        from graphmend.dynamo.service import Service

        if self._made is None:
            self._made = Service()
        return self._made

    def _request(self, document: Document, names: tuple[str, ...]) -> Request:
        from graphmend.dynamo.targets import Declared, Request

        path, configuration = Path(document.path), self._folders.configuration(document.path)
        folder = self._folders.of(path).path
        return Request(
            path=document.path,
            names=names,
            texts=dict(self._texts()),
            declared=tuple(Declared(**target) for target in configuration["targets"]),
            device=configuration["verify.device"],
            timeout=configuration["verify.timeout-seconds"],
            interpreter=configuration["interpreter"] or _executable(self._folders.interpreter(document.path)),
            roots=tuple(map(str, self._folders.roots)),
            cwd=None if folder is None else str(folder),
        )


def _executable(interpreter: Interpreter) -> str:
    """The program of an interpreter that was found by its folder."""
    parts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return str(interpreter.prefix.joinpath(*parts))
