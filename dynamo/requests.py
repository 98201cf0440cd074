"""What to check, as a request: file, names, declared inputs, texts of unsaved buffers.

Reads names on a command line, runs nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Declared:
    """A `[[tool.graphmend.targets]]` entry: Python expressions, kept as data until the user asks for a check."""

    target: str
    init: str = ""
    inputs: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One check of one file.

    `texts` holds unsaved buffers by absolute path; they win over the files. `names` are classes, functions or
    `Class.method`; empty means every target that is found. `roots` are the folders whose files are the user's
    (workspace folders); the file's own package is always one. `mended` are texts for a second run beside the first;
    `named` are the differences that their mends name. `confined` says that the mended texts are not the user's own:
    they run where they can neither write nor reach anything. `unproven`, and so `confined`, says that no rule made
    them: results are compared on more inputs. `batches` is the length of the stream of differing
    batches that each target is called on, `lengths` whether these differ in length too.
    """

    path: str
    names: tuple[str, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    declared: tuple[Declared, ...] = ()
    device: str = "auto"
    timeout: float = 60.0
    interpreter: str = sys.executable
    roots: tuple[str, ...] = ()
    cwd: str | None = None
    module: str | None = None
    import_root: str | None = None
    mended: Mapping[str, str] | None = None
    named: tuple[str, ...] = ()
    confined: bool = False
    unproven: bool = False
    bench: bool = False
    batches: int = 0
    lengths: bool = False
    memory: int | None = None

    def job(self, number: int, **more: Any) -> dict[str, Any]:
        """The request as the worker reads it."""
        return {
            **more,
            "id": number,
            "path": os.path.abspath(self.path),
            "names": list(self.names),
            "texts": dict(self.texts),
            "declared": [
                {"target": d.target, "init": d.init, "inputs": d.inputs} for d in self.declared if self.concerns(d)
            ],
            "device": self.device,
            "timeout": self.timeout,
            "roots": [package_root(self.path), *self.roots],
            "cwd": self.cwd or os.path.dirname(os.path.abspath(self.path)),
            "module": self.module,
            "import_root": self.import_root,
            "bench": self.bench,
            "batches": self.batches,
            "lengths": self.lengths,
            "memory": self.memory or _most_memory(),
        }

    @property
    def targets(self) -> tuple[str, ...]:
        """The names that are checked; none where every target that is found is."""
        declared = (entry.target.rpartition(":")[2] for entry in self.declared if self.concerns(entry))
        return self.names or tuple(dict.fromkeys(declared))

    def concerns(self, declared: Declared) -> bool:
        """Whether an entry (`file.py:Name`, `package.module:Name` or `Name`) is about this file."""
        place, colon, _ = declared.target.rpartition(":")
        if not colon:
            return True
        path = os.path.realpath(self.path)
        if place.endswith(".py"):
            return ("/" + path.replace(os.sep, "/")).endswith("/" + place.replace(os.sep, "/").removeprefix("./"))
        tail = os.path.join(*place.split("."))
        return path.endswith((os.sep + tail + ".py", os.sep + os.path.join(tail, "__init__.py")))


def _most_memory() -> int | None:
    """Three quarters of the machine's memory: a check must not push the editor out of it."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * 3 // 4
    except (AttributeError, ValueError, OSError):  # Windows
        return None


def package_root(path: str) -> str:
    """The folder of the outermost package that a file is in, or its own folder."""
    folder = Path(os.path.abspath(path)).parent
    while (folder.parent / "__init__.py").is_file() and (folder / "__init__.py").is_file():
        folder = folder.parent
    return str(folder)
