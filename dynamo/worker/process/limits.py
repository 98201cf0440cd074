"""What a check may use: processor time, memory, file size. Set in the child, before any of the user's code runs."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

FILE_SIZE = 1 << 30
RSS_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes in one unit of `ru_maxrss`."""
PROCESSES = 256
"""How many processes a check may have at once: data loaders and compilers need some, a fork bomb has all there are."""


def apply(cpu_seconds: float, memory: int | None) -> None:
    """Limits this process and what it starts. Each limit that the system does not know, or forbids, is left out."""
    try:
        import resource
    except ImportError:  # Windows
        return

    def limit(what: str, amount: int) -> None:
        number = getattr(resource, what, None)
        if number is None:
            return
        try:
            hard = resource.getrlimit(number)[1]
            if hard != resource.RLIM_INFINITY:
                amount = min(amount, hard)
            resource.setrlimit(number, (amount, hard))
        except (ValueError, OSError):
            pass

    limit("RLIMIT_CPU", int(cpu_seconds) + 1)
    limit("RLIMIT_FSIZE", FILE_SIZE)
    limit("RLIMIT_CORE", 0)
    if memory:
        # RLIMIT_AS would count what CUDA and allocators only reserve; DATA counts private writable memory (Linux 4.7).
        limit("RLIMIT_DATA", memory)


def die_with_parent(parent: int) -> None:
    """On Linux, ends this process when the one that forked it ends."""
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def adopt_orphans() -> None:
    """On Linux, processes whose parent ended become ours, so that they can be found and ended with the check."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def tasks() -> int:
    """How many processes and threads the system has (Linux; 0 elsewhere). Cheap: asked for all the time."""
    try:
        with open("/proc/loadavg") as file:
            return int(file.read().split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 0


def of_groups(groups: set[int]) -> dict[int, int]:
    """How many processes each of some process groups has (Linux)."""
    found = dict.fromkeys(groups, 0)
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                group = os.getpgid(int(name))
                if group in found:
                    found[group] += 1
    return found
