"""Runs tasks on this machine, several at once, each in one of a few processes that take one after another."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait

from graphmend.cli.sweeping import one_target
from graphmend.cli.sweeping.one_target import Line
from graphmend.cli.sweeping.task import Task

#: how often a task is begun whose process dies; the target's own end is no death of it
TRIES = 2

#: seconds that a process which was told to end is waited for
_PATIENCE = 5.0


def run_all(tasks: Sequence[Task], jobs: int) -> Generator[Line, None, None]:
    """The lines of tasks, as they end. Closing the iterator ends what is running."""
    seats = _Seats()
    with ThreadPoolExecutor(max(1, min(jobs, len(tasks)))) as threads:
        futures: list[Future[Line]] = [threads.submit(seats.run, task) for task in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            seats.stop()
            threads.shutdown(wait=True, cancel_futures=True)


class _Seats:
    """A process for each thread that asks; one that dies is replaced, and takes no other task with it."""

    def __init__(self) -> None:
        self._own = threading.local()
        self._made: list[ProcessPoolExecutor] = []
        self._stopping = False
        self._lock = threading.Lock()

    def run(self, task: Task) -> Line:
        for _ in range(TRIES):
            try:
                return self._executor().submit(one_target.run, task).result()
            except BrokenProcessPool:
                if self._stopping:
                    raise CancelledError from None
                self._own.executor = None
        return one_target.lost(task, f"the process that ran it ended {TRIES} times (out of memory?)")

    def stop(self) -> None:
        """Ends every process, whatever it does; the worker of each ends with it."""
        with self._lock:
            self._stopping = True
            ended = multiprocessing.active_children()
            for process in ended:
                process.terminate()
            for process in ended:
                process.join(_PATIENCE)
            for executor in self._made:
                executor.shutdown(wait=False, cancel_futures=True)

    def _executor(self) -> ProcessPoolExecutor:
        executor: ProcessPoolExecutor | None = getattr(self._own, "executor", None)
        if executor is None:
            with self._lock:
                if self._stopping:
                    raise CancelledError
                # not forked: this process has threads
                executor = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_start)
                self._made.append(executor)
            self._own.executor = executor
        return executor


def _start() -> None:
    """In a new process: an interrupt from the keyboard reaches every process; the first one decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        with contextlib.suppress(OSError):
            wait([parent.sentinel])
        os._exit(1)
