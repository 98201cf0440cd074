"""Records every `torch.compile` of a process that somebody else started: each event is a line in a file of the process.

Lines are written at once: a process may be killed, or leave by `os._exit`, as the workers of data loaders do.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from typing import Any

import torch

from .. import versions
from .hooks import HOOKS, Installed
from .lines import Project
from .recorder import Recorder

_STANDARD = os.path.realpath(sysconfig.get_paths()["stdlib"]) + os.sep


class Sink(list):  # type: ignore[type-arg]
    """A list that keeps nothing and writes what is appended.

    What breaks in a frame of the standard library's own is left out: it was called eagerly, and nobody mends it.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def append(self, item: Any) -> None:
        path = os.path.realpath(item.get("file") or "")
        if not path.startswith(_STANDARD) or "-packages" in path[len(_STANDARD) :]:
            write(self.kind, item)


def write(kind: str, item: Any) -> None:
    """The process is asked for each time: a fork inherits this module and must write into a file of its own."""
    path = os.path.join(os.environ["GRAPHMEND_WATCH"], f"{os.getpid()}.jsonl")
    line = json.dumps({kind: item}, default=str) + "\n"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    except OSError:
        return  # whoever watched has gone
    try:
        os.write(descriptor, line.encode("ascii"))
    finally:
        os.close(descriptor)


class Watcher(Recorder):
    """A recorder that tells once where it cannot be trusted."""

    told = False

    def converted(self) -> None:
        if not self.told and (reason := self.blind) is not None:
            self.told = True
            write("blind", versions.blind(torch.__version__, reason))


def start() -> None:
    """Hooks into Dynamo for the rest of the process."""
    project = Project(os.environ.get("GRAPHMEND_WATCH_ROOTS", os.getcwd()).split(os.pathsep))
    recorder = Watcher(project.contains)
    recorder.events, recorder.recompiles = Sink("break"), Sink("recompile")
    recorder.__enter__()
    Installed().wrap(HOOKS["graph"].place(torch.__version__), _counting_graphs)
    write("start", {"argv": sys.argv, "torch": torch.__version__})
    recorder.converted()


def _counting_graphs(inner: Any) -> Any:
    """Tells of each graph that goes to a backend, whichever backend that is."""

    def call_user_compiler(output: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        write("graph", sum(n.op in ("call_function", "call_method", "call_module") for n in graph.graph.nodes))
        return inner(output, graph, *args, **kwargs)

    return call_user_compiler
