"""Runs tasks on a cluster, each as one task of Ray, on Ray's own scheduler and retries. The only file that imports ray.

Tasks are plain data, and the function is found by its name: graphmend must be importable on every node.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator, Sequence
from typing import Any, NamedTuple

from graphmend.cli.failures import UsageError
from graphmend.cli.sweeping import one_target
from graphmend.cli.sweeping.one_target import Line
from graphmend.cli.sweeping.task import Task

#: how often Ray begins a task again whose process, or node, ended
RETRIES = 3
_SECONDS_TO_ANSWER = 5.0


class Cluster(NamedTuple):
    """A cluster, and what it reserves for each task."""

    address: str
    cpus: float = 1.0
    gpus: float = 0.0
    memory: int | None = None
    """Bytes; None reserves none."""
    folder: str | None = None
    """A folder that Ray copies to every node; tasks find their files there."""


def run_all(tasks: Sequence[Task], cluster: Cluster) -> Generator[Line, None, None]:
    """The lines of tasks, as they end. Closing the iterator ends what is running. Raises `UsageError` where there is
    no cluster, or where its nodes cannot run anything.
    """
    ray = _connected(cluster)
    try:
        resources: dict[str, Any] = {"num_cpus": cluster.cpus, "num_gpus": cluster.gpus, "max_retries": RETRIES}
        if cluster.memory is not None:
            resources["memory"] = cluster.memory
        remote = ray.remote(**resources)(one_target.run)
        running = {remote.remote(task): task for task in tasks}
        while running:
            ended, _ = ray.wait(list(running), num_returns=1)
            for reference in ended:
                yield _line(ray, reference, running.pop(reference))
    finally:
        ray.shutdown()  # ends the tasks of this driver, too


def _line(ray: Any, reference: Any, task: Task) -> Line:
    try:
        line: Line = ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # `one_target.run` raises nothing: it was not reached
        raise UsageError(f"the nodes of the cluster cannot run graphmend: {_last(error)}; install it there") from None
    except ray.exceptions.RaySystemError as error:
        raise UsageError(f"Ray gave up: {_last(error)}") from None
    except ray.exceptions.RayError as error:
        return one_target.lost(task, f"{type(error).__name__} after {RETRIES} retries: {_first(error)}")
    return line


def _connected(cluster: Cluster) -> Any:
    if cluster.address not in ("auto", "local"):
        _somebody_listens(cluster.address)
    try:
        import ray
    except ImportError as error:
        missing = f"--address needs Ray, which cannot be imported ({error}): pip install 'graphmend[ray]'"
        raise UsageError(missing) from None
    shipped = {"working_dir": cluster.folder} if cluster.folder is not None else None
    try:
        ray.init(cluster.address, runtime_env=shipped, log_to_driver=False, configure_logging=False)
    except Exception as error:
        raise UsageError(f"no Ray cluster at {cluster.address}: {_first(error)}") from None
    return ray


def _somebody_listens(address: str) -> None:
    """Ray itself tries for minutes, and then ends the process."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        raise UsageError(f"{address} is no address of a Ray cluster: HOST:PORT, ray://HOST:PORT, auto or local")
    try:
        with contextlib.closing(socket.create_connection((host, int(port)), _SECONDS_TO_ANSWER)):
            return
    except (OSError, OverflowError) as error:
        raise UsageError(f"no Ray cluster answers at {address}: {str(error).lower()}") from None


def _first(error: BaseException) -> str:
    return " ".join((str(error).strip().splitlines() or [type(error).__name__])[0].split())


def _last(error: BaseException) -> str:
    return " ".join((str(error).strip().splitlines() or [type(error).__name__])[-1].split())
