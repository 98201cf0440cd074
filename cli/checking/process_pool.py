"""Checks many files, in several processes where that is worth their start."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from graphmend.cli.checking.file_checker import Checker
from graphmend.cli.checking.file_report import FileReport
from graphmend.cli.checking.plan import Plan

#: fewer files than these for each process are checked sooner than a process starts
_WORTH_A_PROCESS = 16

#: neighbours share the modules they import, so they go to one process together
_LONGEST_BATCH = 32


def check_all(plan: Plan, paths: Sequence[Path], jobs: int | None = None) -> Iterator[FileReport]:
    """The reports of files, in order. A worker that dies loses nothing but its own batch, which is reported."""
    workers = min(jobs or available_cores(), max(len(paths) // _WORTH_A_PROCESS, 1))
    if workers == 1:
        with _rare_collection():
            yield from map(Checker(plan).check, paths)
        return
    size = max(1, min(_LONGEST_BATCH, len(paths) // (workers * 4)))
    batches = [paths[start : start + size] for start in range(0, len(paths), size)]
    with ProcessPoolExecutor(workers, initializer=_start, initargs=(plan,)) as executor:
        try:
            futures = [executor.submit(_check_batch, batch) for batch in batches]
            for future, batch in zip(futures, batches, strict=True):
                try:
                    yield from future.result()
                except BrokenProcessPool:
                    lost = "not checked: a worker process died (out of memory?); --jobs 1 uses none"
                    yield from (FileReport(str(path), problems=[f"{path}: {lost}"]) for path in batch)
        except BaseException:  # an interrupt: the files in work are abandoned, each whole as it is
            executor.shutdown(wait=False, cancel_futures=True)
            _stop_workers()
            raise


@contextlib.contextmanager
def _rare_collection() -> Iterator[None]:
    """Leaves the collection of cycles to the checker. Syntax trees hold none, and looking for some in them again and
    again takes as long as checking. What is left in the end is not looked at at all: the command is about to end."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def available_cores() -> int:
    """The cores that this process may use, which in a container are fewer than the machine has."""
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _stop_workers() -> None:
    for child in multiprocessing.active_children():
        child.terminate()


_checker: Checker | None = None


def _start(plan: Plan) -> None:
    """In a worker: an interrupt from the keyboard reaches every process; the first one decides what it means."""
    global _checker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _leave)
    gc.disable()
    _checker = Checker(plan)


def _leave(*_: object) -> None:
    """As an exception, so that a file that is being written is tidied up on the way out."""
    raise SystemExit(1)


def _check_batch(paths: Sequence[Path]) -> list[FileReport]:
    assert _checker is not None
    try:
        return [_checker.check(path) for path in paths]
    except SystemExit:  # the executor would take it for a result and go on with the next batch
        os._exit(1)
