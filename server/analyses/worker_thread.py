"""One thread that does the computing, so that the event loop stays free to answer. Knows nothing of what it runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class WorkerThread:
    """Runs jobs one at a time. What was asked last runs first: it is what the user looks at.

    The thread is a daemon: a job that is still running does not keep the process alive.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], Callable[[], Any]]] = []
        self._wake = threading.Condition()
        self._thread: threading.Thread | None = None

    def run(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """The job's result, on the running loop. A future cancelled before its turn costs nothing."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._wake:
            self._jobs.append((loop, future, job))
            self._wake.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        return future

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._jobs:
                    self._wake.wait()
                loop, future, job = self._jobs.pop()
            if future.cancelled():
                continue
            result, error = None, None
            try:
                result = job()
            except BaseException as raised:  # whatever a job raises belongs to whoever awaits it
                error = raised
            try:
                loop.call_soon_threadsafe(_settle, future, result, error)
            except RuntimeError:  # the loop is closed
                return
            del loop, future, job, result, error  # an idle thread holds no document alive


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
