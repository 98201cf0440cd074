"""Checks for the server and the command: starts, warms, cancels and replaces workers, one warm parent for each
interpreter.

Everything of the user's runs in the worker's processes. A check never raises: `Report.problem` says what went wrong.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphmend.dynamo.report import Report, Usage, report
from graphmend.dynamo.report_cache import KeptRun, Store, surroundings
from graphmend.dynamo.requests import Request
from graphmend.dynamo.worker_process import FORK, Handshake, Unavailable, WorkerDied, WorkerProcess, torch_stamp

Progress = Callable[[str], None]

IDLE_SECONDS = 600.0


class Service:
    """The checks of one server or command. Use it within one event loop, and `close` it.

    With a `store`, reports survive the process: `recall` finds them.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS, fork: bool = FORK, store: Store | None = None) -> None:
        self._store = store
        self._fork = fork
        self._idle_seconds = idle_seconds
        self._workers: dict[str, WorkerProcess] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._busy: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._closing: set[asyncio.Future[None]] = set()
        self._last: KeptRun | None = None
        self._closed = False

    async def check(self, request: Request, on_progress: Progress | None = None) -> Report:
        """Runs a check. Cancelling the task ends the check's processes at once."""
        if request.mended is not None:
            return await self.compare(replace(request, mended=None), lambda before: request, on_progress)
        return await self._checked(request, on_progress or _silent)

    async def compare(
        self, request: Request, mend: Callable[[Report], Request | None], on_progress: Progress | None = None
    ) -> Report:
        """Runs a check, and beside it the texts that `mend` makes of its report: the request with `mended`, or None
        where there are none.
        """
        tell = on_progress or _silent
        run = self._take(request) or await self._run(request, tell)
        try:
            before = run.report
            mended = mend(before) if before.problem is None else None
            if mended is None or mended.mended is None:
                return before
            tell("checking the mended text")
            texts = replace(mended, texts={**mended.texts, **mended.mended}, mended=None)
            with tempfile.TemporaryDirectory(prefix="graphmend-") as writable:
                walls = {"confined": writable} if mended.confined else {}
                after = await self._checked(texts, tell, compare=run.folder.name, **walls)
            return replace(before, after=replace(after, named=mended.named))
        finally:
            self._keep(run)

    def _take(self, request: Request) -> KeptRun | None:
        """The last run, where it is of the same request; it is nobody else's then."""
        run, self._last = self._last, None
        if run is not None and not run.is_of(request, torch_stamp(request.interpreter)):
            run.folder.cleanup()
            return None
        return run

    async def _run(self, request: Request, tell: Progress) -> KeptRun:
        folder = tempfile.TemporaryDirectory(prefix="graphmend-")
        try:
            around = surroundings(request, torch_stamp(request.interpreter)) if _is_of_a_model(request) else None
            report = await self._checked(request, tell, keep=folder.name, unproven=_is_of_a_model(request))
        except BaseException:
            folder.cleanup()
            raise
        return KeptRun(request, around, report, folder)

    def _keep(self, run: KeptRun | None) -> None:
        """Keeps a run for the next text where more of them are likely, and gives up the one before."""
        if self._last is not None:
            self._last.folder.cleanup()
        self._last = run
        if run is not None and (run.report.problem is not None or run.surroundings is None or self._closed):
            self._last = None
            run.folder.cleanup()

    def recall(self, request: Request) -> Report | None:
        """The report of an earlier check of the same texts, made in this or another process; None where there is
        none.
        """
        answer = None if self._store is None else self._store.find(request, torch_stamp(request.interpreter))
        return None if answer is None else _report(request, answer)

    @property
    def memory(self) -> int:
        """Bytes that the warm workers occupy, as far as they told."""
        return sum(worker.memory or 0 for worker in self._workers.values())

    async def handshake(self, interpreter: str) -> Handshake:
        """Versions in an interpreter; raises `Unavailable`, whose message is one line, where no check can run in it."""
        return (await self._worker(interpreter)).hello

    async def close(self) -> None:
        """Ends every worker and check."""
        for timer in self._timers.values():
            timer.cancel()
        self._closed = True
        self._keep(None)
        workers, self._workers = list(self._workers.values()), {}
        await asyncio.gather(*self._closing, *(worker.close() for worker in workers))

    async def _checked(self, request: Request, tell: Progress, **more: str | bool) -> Report:
        key = request.interpreter
        self._busy[key] = self._busy.get(key, 0) + 1
        try:
            answer = await self._with_retry(request, tell, key, more)
        except Unavailable as error:
            return Report(request.path, problem=str(error))
        finally:
            self._busy[key] -= 1
            self._idle_later(key)
        done = answer.get("end") == "done" and not answer["result"].get("problem")
        if self._store is not None and done and not more:
            self._store.keep(request, torch_stamp(request.interpreter), answer)
        return _report(request, answer)

    async def _with_retry(
        self, request: Request, tell: Progress, key: str, more: dict[str, str | bool]
    ) -> dict[str, Any]:
        """The worker's answer. A parent that dies is replaced once; a check that dies is the user's to know about."""
        for again in (True, False):
            worker = await self._worker(key) if self._fork else await WorkerProcess.start(key, fork=False)
            try:
                answer = await worker.check(request.job(worker.next_number(), **more), tell)
                return {**answer, "python": worker.hello.python}
            except WorkerDied as error:
                if not again:
                    return {"problem": str(error)}
                tell(f"starting again: {error}")
            finally:
                if worker.once:
                    await worker.close()
        raise AssertionError("the second try returns")

    async def _worker(self, key: str) -> WorkerProcess:
        """The living worker of an interpreter; started, or replaced where its torch was changed on disk."""
        async with self._locks.setdefault(key, asyncio.Lock()):
            worker = self._workers.get(key)
            if worker is not None and (not worker.alive or worker.outdated()):
                del self._workers[key]
                await worker.close()
                worker = None
            if worker is None:
                worker = self._workers[key] = await WorkerProcess.start(key, fork=self._fork)
            return worker

    def _idle_later(self, key: str) -> None:
        old = self._timers.pop(key, None)
        if old is not None:
            old.cancel()
        if not self._busy.get(key):
            self._timers[key] = asyncio.get_running_loop().call_later(self._idle_seconds, self._idle, key)

    def _idle(self, key: str) -> None:
        worker = None if self._busy.get(key) else self._workers.pop(key, None)
        if worker is not None:
            self._keep(None)
            self._closing.add(task := asyncio.ensure_future(worker.close()))
            task.add_done_callback(self._closing.discard)


def _is_of_a_model(request: Request) -> bool:
    """Is the text that is compared none that rules have made?"""
    return request.confined or request.unproven


def _report(request: Request, answer: Mapping[str, Any]) -> Report:
    """An answer of the worker, or one that was stored."""
    problem = answer.get("problem") or "the check was cancelled"
    result = answer.get("result") or {"problem": problem, "bare": answer.get("bare", problem)}
    found = report(request.path, result, answer.get("output", ""), answer.get("python", ""))
    return replace(found, usage=Usage(*answer["usage"]) if answer.get("usage") else None)


def _silent(stage: str) -> None:
    """Nobody is told."""


def check(request: Request, on_progress: Progress | None = None) -> Report:
    """`Service.check` for callers without an event loop."""

    async def once() -> Report:
        service = Service()
        try:
            return await service.check(request, on_progress)
        finally:
            await service.close()

    return asyncio.run(once())
