"""Runs one target, plain and mended, and tells what became of it as one line of plain data.

Runs in a process that takes one target after another: a job of the local pool, or a worker of a cluster. The target
itself runs in a process of its own (`dynamo/worker`), which is ended in time.
"""

from __future__ import annotations

import asyncio
import os
import platform
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphmend import __version__
from graphmend.cli.failures import UsageError, internal_error
from graphmend.cli.output.verify.json import report_item
from graphmend.cli.sweeping.outcome import Model, models, worst
from graphmend.cli.sweeping.task import Options, Task
from graphmend.cli.verifying.requests import find_module, request
from graphmend.cli.verifying.static_findings import Mending, Static
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service
from graphmend.workspace.config import Configurations, absolute
from graphmend.workspace.options import ConfigurationError

Line = dict[str, Any]

#: what a worker's process took at its start and keeps: GPUs are given anew to each task of a cluster
_GIVEN = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


_FOREVER = 1e9

#: where an object lies, as its `repr` says
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,16}\b")

#: characters of what a target printed that are kept
_OUTPUT_KEPT = 4000

#: what stands before the beginning of a path
_NOT_INSIDE_A_PATH = r"(?<![\w.~+@%\\/-])"


class TooLong(Exception):
    """Mending took longer than a target may."""


def run(task: Task) -> Line:
    """The line of a target. Never raises, but for what ends the process."""
    began, used = time.monotonic(), time.process_time()
    mends = _Mends(task.options)
    report: Report | None = None
    try:
        made = _request(task)
        checks = _checks(tuple(os.environ.get(name) for name in _GIVEN))
        report = checks.run(made, mends.of if task.options.mended else None)
        found = mends.noted(models(report))
    except (UsageError, ConfigurationError) as error:
        found = [Model("", "failed", "import", str(error))]
    except Exception as error:
        found = [Model("", "failed", "internal", internal_error(error))]
    usages = [r.usage for r in (report, report.after if report else None) if r is not None and r.usage is not None]
    took = {
        "node": platform.node(),
        "seconds": round(time.monotonic() - began, 3),
        "cpu_seconds": round(time.process_time() - used + sum(usage.seconds for usage in usages), 3),
        "memory": max((usage.memory for usage in usages), default=None),
        "output": report.output[-_OUTPUT_KEPT:] if report is not None else "",
    }
    return line(task, found, report, mends.told(), took)


def line(task: Task, found: list[Model], report: Report | None, mends: dict[str, Any], took: dict[str, Any]) -> Line:
    """One line of the results. All that differs from one run to the next of the same is in `run`, and in what is
    called `seconds`.
    """
    decisive = worst(found)
    item = _silent(_in_order(report_item(report))) if report is not None else None
    whole = {
        "target": task.target,
        "outcome": decisive.outcome,
        "reason": decisive.reason,
        "problem": decisive.problem,
        "models": [model._asdict() for model in found],
        "mends": mends,
        "report": item,
        "options": task.options.deciding(),
        "graphmend": __version__,
    }
    # a sweep that goes on knows the target by this very text
    return {**_portable(whole, _root(task)), "target": task.target, "run": took}


def _silent(item: dict[str, Any]) -> dict[str, Any]:
    """A report without what was printed, by the plain and the mended run: log lines have their time in them."""
    after = item["after"]
    return {**item, "output": "", "after": None if after is None else {**after, "output": ""}}


def lost(task: Task, problem: str) -> Line:
    """The line of a target whose process, or machine, ended again and again."""
    took = {"node": None, "seconds": None, "cpu_seconds": None, "memory": None, "output": ""}
    return line(task, [Model("", "failed", "lost", problem)], None, _Mends(task.options).told(), took)


# the request


def _request(task: Task) -> Request:
    root = _root(task)
    if task.is_module:
        with _inside(root):
            path = find_module(task.place, task.options.python)
        if path is None:
            raise UsageError(f"{task.place} is not a module that can be found on {platform.node()}")
    else:
        path = absolute(root / task.place)
        if not path.is_file():
            raise UsageError(f"{task.place} does not exist on {platform.node()}")
    configuration = _configurations(task.options.accept).of_file(path)
    names = (task.name,) if task.name else ()
    made = request(path, names, configuration, task.options.python, str(root), task.options.timeout)
    packages = [str(_package(name, task.options.python)) for name in task.options.packages]
    return replace(
        made,
        declared=task.declared,
        roots=(*made.roots, *packages),
        device=task.options.device,
        memory=task.options.memory,
        batches=task.options.batches,
        lengths=task.options.lengths,
    )


def _root(task: Task) -> Path:
    return absolute(Path(task.root))


def _package(name: str, python: str | None) -> Path:
    path = find_module(name, python)
    if path is None:
        raise UsageError(f"the package {name} cannot be found on {platform.node()}")
    return path.parent if path.name == "__init__.py" else path


@lru_cache(maxsize=1)
def _configurations(accept: tuple[str, ...]) -> Configurations:
    return Configurations({"accept": list(accept)} if accept else {}, origin="command line")


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Modules are found from the current folder; on a machine of a cluster that is another one."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# the mends


class _Mends:
    """The mended texts of what a run reached."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._made: dict[str, Mending] = {}
        self.problem: str | None = None
        """Why there are none, where making them did not end."""

    def of(self, request: Request, before: Report) -> Request | None:
        """The request with the mended texts of its own file, and of those of its packages that the run reached; None
        where no text changes, or where that takes too long.
        """
        try:
            self._make(request, before)
        except TooLong as error:
            self.problem = str(error)
            self._made.clear()
        if not self._made:
            return None
        named = tuple(dict.fromkeys(kind for mending in self._made.values() for kind in mending.named))
        texts = {path: mending.text for path, mending in self._made.items()}
        return replace(request, mended=texts, named=named)

    def _make(self, request: Request, before: Report) -> None:
        own = os.path.realpath(request.path)
        reached = {path for target in before.targets for path in (*target.traced, *target.executed)}
        with _limited(request.timeout, "mending what it reaches"):
            for path in sorted({own, *reached}):
                names = request.targets if path == own else _where_it_breaks(path, before)
                if path == own or (path.endswith(".py") and os.path.isfile(path)):
                    mending = _mended_text(path, os.stat(path).st_mtime_ns, names, self._options)
                    if mending is not None:
                        self._made[request.path if path == own else path] = mending

    def noted(self, found: list[Model]) -> list[Model]:
        """What became of the models; of those that break, why they were not mended."""
        return [
            model._replace(problem=model.problem or self.problem) if model.outcome == "breaks" else model
            for model in found
        ]

    def told(self) -> dict[str, Any]:
        made = sum(mending.applied for mending in self._made.values())
        return {"made": made, "filenames": sorted(self._made), "problem": self.problem}


def _where_it_breaks(path: str, before: Report) -> tuple[str, ...]:
    """The functions of a file that TorchDynamo traced when it stopped: of a helper, nothing else says that it is
    compiled.
    """
    frames = (frame for item in before.breaks for frame in item.stack if os.path.realpath(frame.path) == path)
    return tuple(sorted({frame.function for frame in frames if "<" not in frame.function}))


@lru_cache(maxsize=256)
def _mended_text(path: str, changed: int, names: tuple[str, ...], options: Options) -> Mending | None:
    """The mended text of a file, kept for the next target that reaches it; None where nothing changes."""
    text = Static(Path(path), _configurations(options.accept), options.python, names)
    mending = text.mended(options.unsafe, further=False, callers=False)
    return mending if mending.text != text.source.text else None


@contextmanager
def _limited(seconds: float, what: str) -> Iterator[None]:
    """Ends what takes longer, where the system and the thread allow that."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TooLong(f"{what} took longer than {seconds:.0f} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# the worker


class _Checks:
    """A warm worker, kept from one target to the next."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._service = Service(idle_seconds=_FOREVER)

    def run(self, request: Request, mend: Any) -> Report:
        if mend is None:
            return self._loop.run_until_complete(self._service.check(request))
        return self._loop.run_until_complete(self._service.compare(request, lambda before: mend(request, before)))

    def close(self) -> None:
        self._loop.run_until_complete(self._service.close())
        self._loop.close()


_living: dict[tuple[str | None, ...], _Checks] = {}


def _checks(given: tuple[str | None, ...]) -> _Checks:
    """The worker for the devices that this process may use now."""
    if given not in _living:
        close()
        _living[given] = _Checks()
    return _living[given]


def close() -> None:
    """Ends the worker of this process."""
    while _living:
        _living.popitem()[1].close()


# what does not depend on the machine


def _in_order(report: dict[str, Any]) -> dict[str, Any]:
    """A report whose recompilations stand by their places: by what they cost, each run has another order."""
    for target in report["targets"]:
        target["recompiles"].sort(key=lambda one: (one["filename"], one["row"], one["reason"]))
    if report["after"] is not None:
        _in_order(report["after"])
    return report


def _portable(value: Any, root: Path) -> Any:
    """The same data with paths below the root, or below the folder of installed packages, relative to it, and without
    the addresses of objects.
    """
    if isinstance(value, dict):
        return {key: _portable(each, root) for key, each in value.items()}
    if isinstance(value, list):
        return [_portable(each, root) for each in value]
    if isinstance(value, str):
        return _ADDRESS.sub(" at 0x", _without_root(value, str(root) + os.sep))
    return value


def _without_root(text: str, root: str) -> str:
    text = re.sub(_NOT_INSIDE_A_PATH + re.escape(root), "", text)
    for folder in ("site-packages", "dist-packages"):
        head, marker, tail = text.rpartition(f"{os.sep}{folder}{os.sep}")
        if marker and head.startswith(os.sep) and " " not in head:
            text = tail
    return text
