"""Work-done progress, for clients that show it: begins, tells, ends, and lets the user cancel.

https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#workDoneProgress
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from types import TracebackType

from lsprotocol import types
from pygls.lsp.server import LanguageServer

_numbers = itertools.count(1)

#: A client that has not answered by then shows no progress; the work does not wait for it.
_PATIENCE = 1.0


class Progress:
    """An async context in which `tell` reports; `cancel` is called when the user wants the work to stop."""

    def __init__(self, server: LanguageServer, title: str, cancel: Callable[[], object], *, shown: bool) -> None:
        self._server = server
        self._title = title
        self._cancel = cancel
        self._shown = shown
        self._token = f"graphmend-{next(_numbers)}"
        self._begun = False

    async def __aenter__(self) -> Progress:
        if self._shown:
            create = asyncio.ensure_future(self._server.work_done_progress.create_async(self._token))
            # shielded: to cancel a request whose answer is under way breaks pygls' bookkeeping (pygls issue 621)
            done, _ = await asyncio.wait({asyncio.shield(create)}, timeout=_PATIENCE)
            self._begun = bool(done) and create.done() and create.exception() is None
        if self._begun:
            self._server.work_done_progress.tokens[self._token].add_done_callback(self._asked_to_stop)
            begin = types.WorkDoneProgressBegin(title=self._title, cancellable=True)
            self._server.work_done_progress.begin(self._token, begin)
        return self

    def tell(self, message: str, percentage: int | None = None) -> None:
        if self._begun:
            report = types.WorkDoneProgressReport(message=message, percentage=percentage)
            self._server.work_done_progress.report(self._token, report)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._begun:
            self._server.work_done_progress.tokens.pop(self._token, None)
            with contextlib.suppress(Exception):  # the client may be gone
                self._server.work_done_progress.end(self._token, types.WorkDoneProgressEnd())

    def _asked_to_stop(self, _: object) -> None:
        self._cancel()
