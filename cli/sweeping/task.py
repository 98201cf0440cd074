"""One target of a sweep as data: what a process, here or on another machine, needs to run it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from graphmend.dynamo.requests import Declared
from graphmend.dynamo.worker_process import torch_stamp


class Options(NamedTuple):
    """What holds for every target of a sweep."""

    mended: bool = True
    """Whether the mended text is run beside the plain one."""
    unsafe: bool = False
    accept: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    """Packages whose files are mended as well."""
    batches: int = 0
    lengths: bool = False
    device: str = "auto"
    timeout: float = 120.0
    """Seconds, of the plain and of the mended run each."""
    memory: int | None = None
    """Bytes that the process of a target may hold; None: three quarters of the machine's."""
    python: str | None = None
    torch: str | None = None
    """The version of the interpreter's torch, as far as it can be told without running it."""

    def deciding(self) -> dict[str, Any]:
        """Those that decide what a result says: results that were made with others are not mixed with these."""
        values = self._asdict()
        kept = ("mended", "unsafe", "accept", "packages", "batches", "lengths", "device", "torch")
        return {name: list(values[name]) if isinstance(values[name], tuple) else values[name] for name in kept}


def torch_version(executable: str) -> str | None:
    """What the files of an interpreter's torch say of its version; None for one that lies elsewhere."""
    stamp = torch_stamp(executable)
    found = re.search(r"^__version__ = '([^']+)'", Path(stamp[0]).read_text("utf-8"), re.MULTILINE) if stamp else None
    return found[1] if found else None


class Task(NamedTuple):
    """`place` is a file below `root` (or absolute), or a module that is found where the task runs. An empty `root` is
    the folder that the process starts in; an empty `name` means everything in the file that can be run.
    """

    place: str
    is_module: bool
    name: str
    root: str
    declared: tuple[Declared, ...]
    options: Options

    @property
    def target(self) -> str:
        """The target as `graphmend verify` takes it; a sweep knows it by this."""
        return f"{self.place}:{self.name}" if self.name else self.place
