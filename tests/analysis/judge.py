"""A process in which TorchDynamo judges small modules. Started by path; knows nothing of the analysis.

Each line of its input is a JSON object {"files": {path: text}, "main": path, "run": [expression, ...]}; it answers each
with one line: {"breaks": [[path, line, break's id, kind], ...], "kinds": [[line, torch's name of a break's kind], ...],
"graphs": number, "error": what escaped, or null}. A request is served by a fork of the process, which has torch loaded
and warm, so nothing that the code does is left.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Any

LIMIT_SECONDS = 30
WARM_UP = """
import torch

class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x, scale=1.0):
        try:
            y = self.linear(x) * scale
        except ValueError:
            y = x
        print("here")
        with torch.no_grad():
            rows = [t + 1 for t in (x, y)]
        if y.sum() > 0:
            rows.append(x.sum().item())
        return {"rows": rows, "y": torch.relu(y)}

layer = torch.compile(Layer())

@torch.compile(fullgraph=True)
def whole(x):
    return x.sum().item()
"""
"""Compiled before the first fork: what TorchDynamo imports and fills while it breaks a graph is there then, and a
request takes 0.1 s instead of 0.2 (torch 2.13)."""


def judge(request: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Import the main file of a request, evaluate its expressions in it, and say what broke."""
    import torch
    from torch._dynamo.utils import clear_compilation_metrics, get_compilation_metrics

    clear_compilation_metrics()
    worker = import_module("graphmend.dynamo.worker.recording.recorder")
    for path, text in request["files"].items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    sys.path.insert(0, str(folder))
    recorder = worker.Recorder(lambda path: path.startswith(str(folder)))
    torch.compiler.set_default_backend(recorder.backend)
    errors = []
    with recorder:
        module = import_module(request["main"].removesuffix(".py").replace("/", "."))
        for expression in request["run"]:
            try:
                eval(expression, vars(module))
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}"[:300])
    events = [e for e in worker.once_each(recorder.events) if e["in_project"]]
    breaks = {(os.path.relpath(e["file"], folder), e["span"][0], e["gb_id"], e["kind"]) for e in events}
    return {
        "breaks": sorted(breaks, key=str),
        "kinds": [(e["span"][0], kind) for e in events for kind in (e["gb_type"], *e["wrapped_by"])],
        "graphs": len(recorder.graphs) or len(get_compilation_metrics()),  # where the backend is the module's own
        "error": errors[0] if errors else None,
    }


def _serve(request: dict[str, Any], answers: int) -> None:
    """Runs in the fork: answers one request and never returns."""
    import signal

    signal.alarm(LIMIT_SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            answer = judge(request, Path(os.path.realpath(folder)))
    except BaseException as error:
        answer = {"breaks": [], "kinds": [], "graphs": 0, "error": f"{type(error).__name__}: {error}"}
    os.write(answers, json.dumps(answer).encode() + b"\n")
    os._exit(0)


def main() -> None:
    import torch

    import_module("graphmend.dynamo.worker.runs.warmup").leave_guards_untimed()
    answers = os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    path = list(sys.path)
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(Exception):  # requests say what fails
        expressions = ["layer(torch.ones(2, 2))", "whole(torch.ones(2))"]
        judge({"files": {"warm_up.py": WARM_UP}, "main": "warm_up.py", "run": expressions}, Path(folder))
    sys.path[:] = path
    sys.modules.pop("warm_up", None)
    torch._dynamo.reset()
    gc.collect()
    gc.disable()  # a collection in a fork would write to, and so copy, all that torch has in memory
    gc.freeze()
    for line in sys.stdin.buffer:
        child = os.fork()
        if not child:
            os.dup2(null, 0)
            _serve(json.loads(line), answers)
        _, status = os.waitpid(child, 0)
        if status:
            died = {"breaks": [], "kinds": [], "graphs": 0, "error": f"died with {status}"}
            os.write(answers, json.dumps(died).encode() + b"\n")


if __name__ == "__main__":
    main()
