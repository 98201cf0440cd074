"""The check with TorchDynamo: whether it may run, one for each interpreter at a time, and what it leaves behind.

All of the user's code runs in the worker's processes (`dynamo.service`). Knows reports and findings, and no protocol.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphmend.server.analyses.document_analysis import Analysis
from graphmend.server.documents import outline
from graphmend.server.documents.open_documents import Document
from graphmend.server.verification.results import History, checked

if TYPE_CHECKING:
    from graphmend.dynamo.report import Report
    from graphmend.dynamo.requests import Request
    from graphmend.dynamo.service import Service
    from graphmend.server.analyses.folder_settings import Folders
    from graphmend.workspace.interpreter import Interpreter


class Verification:
    """The checks of one session."""

    def __init__(self, folders: Folders, texts: Callable[[], Mapping[str, str]]) -> None:
        self._folders = folders
        self._texts = texts
        self._checked: dict[Document, History] = {}
        self._running: dict[Document, asyncio.Task[Report]] = {}
        #: by interpreter: a "save all" starts no crowd of processes, and one project does not wait for another
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._made: Service | None = None

    def checked(self, document: Document) -> History:
        """What is known of a document; empty where nothing is."""
        return self._checked.get(document) or History()

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

    async def run(
        self,
        document: Document,
        names: tuple[str, ...],
        tell: Callable[[str], None],
        mended: str | None = None,
        named: tuple[str, ...] = (),
        *,
        times: bool = False,
        confined: bool = False,
    ) -> Report | None:
        """The report of a check, with that of the mended text beside it where one is given, whose
        mends name the kinds `named` of differences, and which runs `confined` where it is not the user's own; None
        where it was cancelled. A newer check of a document ends the one before it.
        """
        self.cancel(document)
        request = replace(self._request(document, names), bench=times)
        if mended is not None:
            request = replace(
                request, mended={document.path: document.runnable(mended)}, named=named, confined=confined
            )
        task = asyncio.ensure_future(self._in_turn(request, tell))
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
        from graphmend.analysis.syntax.source import Source

        made = checked(Source(text, document.path), analysis, report)
        self._checked.setdefault(document, History()).add(made)

    async def recall(self, document: Document) -> list[Report]:
        """Reports of earlier sessions on this very text, oldest kind first. Runs nothing of the user's."""
        requests = [self._request(document, names) for names in [(), *_names(document)]]
        # reading the cache, and importing what reads it, must not hold up what the user types
        await asyncio.to_thread(importlib.import_module, "graphmend.dynamo.service")
        service = self._service  # made on the loop: two threads would each make one, and one of the two is never closed
        return await asyncio.to_thread(_recalled, service, requests)

    @property
    def memory(self) -> int:
        """Bytes that the warm processes occupy."""
        return 0 if self._made is None else self._made.memory

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
            async with self._turns[request.interpreter]:
                return await self._service.check(request, tell)

        return check()

    @property
    def _service(self) -> Service:
        """The one service of the session. Ask on the event loop only."""
        from graphmend.dynamo.report_cache import Store
        from graphmend.dynamo.service import Service

        if self._made is None:
            self._made = Service(store=Store())
        return self._made

    def _request(self, document: Document, names: tuple[str, ...]) -> Request:
        from graphmend.dynamo.requests import Declared, Request

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


def _recalled(service: Service, requests: Sequence[Request]) -> list[Report]:
    found = (service.recall(request) for request in requests)
    return [report for report in found if report is not None]


def _executable(interpreter: Interpreter) -> str:
    """The program of an interpreter that was found by its folder."""
    parts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return str(interpreter.prefix.joinpath(*parts))


def _names(document: Document) -> list[tuple[str, ...]]:
    """What a lens over each definition would ask for."""
    return [(definition.name,) for definition in outline.definitions(document.text.text)]
