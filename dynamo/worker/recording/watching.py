"""Records every `torch.compile` of a process that somebody else started: each event is a line in a file of the process.

Lines are written at once: a process may be killed, or leave by `os._exit`, as the workers of data loaders do.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .lines import Project
from .recorder import Recorder


class Sink(list):  # type: ignore[type-arg]
    """A list that keeps nothing and writes what is appended."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def append(self, item: Any) -> None:
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


def start() -> None:
    """Hooks into Dynamo for the rest of the process."""
    project = Project(os.environ.get("GRAPHMEND_WATCH_ROOTS", os.getcwd()).split(os.pathsep))
    recorder = Recorder(project.contains)
    recorder.events, recorder.recompiles = Sink("break"), Sink("recompile")
    recorder.__enter__()
    _count_graphs()
    write("start", {"argv": sys.argv, "missing": recorder.missing})


def _count_graphs() -> None:
    """Each graph that goes to a backend, whichever backend that is."""
    from torch._dynamo.output_graph import OutputGraph

    inner = OutputGraph.call_user_compiler

    def call_user_compiler(output: Any, graph: Any, *args: Any, **kwargs: Any) -> Any:
        write("graph", sum(n.op in ("call_function", "call_method", "call_module") for n in graph.graph.nodes))
        return inner(output, graph, *args, **kwargs)

    OutputGraph.call_user_compiler = call_user_compiler  # type: ignore[assignment, method-assign]
