"""Runs a program and says what it computed, what it left behind, and how often TorchDynamo compiled.

Each program runs in a process of its own, with the default backend replaced by one that runs the graph as it is.
"""

from __future__ import annotations

import dis
import functools
import gc
import math
import multiprocessing
import os
import tempfile
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SECONDS = 120


def run(text: str) -> dict[str, Any]:
    """What calls of compiled code returned, the state of what was compiled, the module's globals, and counts."""
    import runpy

    import torch
    from torch._dynamo.utils import clear_compilation_metrics, counters, get_compilation_metrics

    # a process that was forked from one that compiled has counted already
    torch._dynamo.reset()
    clear_compilation_metrics()
    counters.clear()
    returned: list[Any] = []
    compiled: list[Any] = []
    original = torch.compile

    def recorded(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = function(*args, **kwargs)
            returned.append(_plain(result))
            return result

        return call

    def compile(model: Any = None, **options: Any) -> Any:
        if model is None:
            return lambda one: compile(one, **options)
        compiled.append(model)
        made = original(model, **options)
        if isinstance(made, torch.nn.Module):
            made.forward = recorded(made.forward)  # type: ignore[method-assign]
            return made
        return recorded(made)

    torch.compile = compile  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.py")
        Path(path).write_text(text, encoding="utf-8")
        module = runpy.run_path(path)
        torch.manual_seed(0)
        module["calls"]()
    names = {n: value for n, value in module["calls"].__globals__.items() if not n.startswith("__")}
    return {
        "returned": returned,
        "left": [_left(model) for model in compiled],
        "globals": {name: _plain(value) for name, value in names.items() if _is_data(value)},
        "compilations": len(get_compilation_metrics()),
        "breaks": sum(counters["graph_break"].values()),
    }


def _left(model: Any) -> dict[str, Any]:
    """What a compiled function or module holds."""
    import torch

    if isinstance(model, functools.partial):
        return _left(model.func)
    if isinstance(model, types.MethodType):
        return _left(model.__self__)
    if isinstance(model, types.FunctionType):
        stored = {one.argval for one in dis.get_instructions(model) if one.opname == "STORE_DEREF"}
        cells = zip(model.__code__.co_freevars, model.__closure__ or (), strict=True)
        return {name: _plain(cell.cell_contents) for name, cell in cells if name in stored}
    if isinstance(model, torch.nn.Module):
        held = {f"state.{name}": _plain(value) for name, value in model.state_dict().items()}
        for name, part in model.named_modules():
            buffers = dict(part.named_buffers(recurse=False))
            for key, value in [*vars(part).items(), *buffers.items()]:
                if not key.startswith("_") and _is_data(value):
                    held[f"{name}.{key}"] = _plain(value)
        return held
    return {key: _plain(value) for key, value in getattr(model, "__dict__", {}).items() if _is_data(value)}


def _is_data(value: Any) -> bool:
    import torch

    return value is None or isinstance(value, (bool, int, float, str, torch.Tensor, list, tuple))


def _plain(value: Any) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        kept = value.detach()
        number = kept.to(torch.float64) if kept.is_floating_point() else kept
        return ("tensor", str(kept.dtype), tuple(kept.shape), value.requires_grad, number.flatten().tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return value if isinstance(value, (bool, int, float, str, type(None))) else type(value).__name__


def differences(one: Any, other: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """In which ways two runs differ: (kind, where). A number and a 0-d tensor of the same value differ in `type`."""
    if _is_tensor(one) and _is_tensor(other):
        if one[1] != other[1]:
            yield "dtype", f"{at}: {one[1]}, then {other[1]}"
        if one[2] != other[2]:
            yield "shape", f"{at}: {one[2]}, then {other[2]}"
        elif one[4] != other[4]:
            promoted = one[1] != other[1]  # its numbers are those of the other dtype then
            yield from (d for d in _numbers(one[4], other[4], at) if not (promoted and d[0] == "rounding"))
        if one[3] != other[3]:
            yield "gradients", at
    elif _is_tensor(other) and isinstance(one, (int, float)):
        yield "type", at
        if other[2] == () and other[4][0] != one:
            yield from _numbers([one], other[4], at)
    elif isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if key not in one or key not in other:
                yield "state", f"{at}.{key}"
            else:
                yield from differences(one[key], other[key], f"{at}.{key}")
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield "shape", f"{at}: {len(one)}, then {len(other)}"
        for number, (a, b) in enumerate(zip(one, other, strict=False)):
            yield from differences(a, b, f"{at}[{number}]")
    elif one != other:
        yield "value", f"{at}: {one}, then {other}"


def _is_tensor(value: Any) -> bool:
    return isinstance(value, tuple) and bool(value) and value[0] == "tensor"


def _numbers(one: Iterable[float], other: Iterable[float], at: str) -> Iterator[tuple[str, str]]:
    pairs = list(zip(one, other, strict=True))
    worst = max((abs(a - b) / max(abs(a), 1e-3) for a, b in pairs if a != b), default=0.0)
    if any(math.isnan(a) != math.isnan(b) for a, b in pairs) or worst > 1e-4:
        yield "value", f"{at}: {[p for p in pairs if p[0] != p[1]][:2]}"
    elif worst:
        yield "rounding", f"{at}: {worst:.1g}"


def compare(before: dict[str, Any], after: dict[str, Any], named: Iterable[str]) -> list[str]:
    """What a mended program does that its mends do not name; nothing where the mends are right."""
    said = []
    for what in ("returned", "left", "globals"):
        found = differences(before[what], after[what], what)
        said += [f"{kind} {where}" for kind, where in found if kind not in set(named)]
    if after["breaks"] > before["breaks"]:
        said.append(f"{after['breaks'] - before['breaks']} graph breaks more")
    if after["compilations"] >= before["compilations"]:
        said.append(f"{before['compilations']} compilations, then {after['compilations']}")
    return said


def _child(text: str, pipe: Any) -> None:
    import torch

    torch.set_num_threads(1)  # OpenMP's threads do not survive a fork: whoever waits for them waits forever
    try:
        pipe.send(run(text))
    except BaseException as error:
        pipe.send({"error": f"{type(error).__name__}: {error}"})


def runs(texts: Iterable[str]) -> list[dict[str, Any]]:
    """What each program did; `error` where it raised."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch._dynamo.convert_frame
    import torch._inductor.compile_fx

    from graphmend.dynamo.worker.runs.warmup import leave_guards_untimed

    torch._inductor.compile_fx.compile_fx = lambda graph, inputs, **_: graph  # type: ignore[assignment]
    leave_guards_untimed()
    _warm()
    gc.freeze()  # a fork whose collector touches everything copies all pages of the process
    try:
        return [_run_in_fork(text) for text in texts]
    finally:
        gc.unfreeze()


@functools.cache
def _warm() -> None:
    """What TorchDynamo imports and fills while it compiles, and compiles anew, is there before the first fork."""
    import torch

    class Layer(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.steps = 0

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            self.steps += 1
            return self.linear(x) * scale * self.steps

    layer = torch.compile(Layer(), backend="eager")
    with torch.no_grad():  # autograd's threads would not survive a fork
        for rows in (2, 3, 4):
            layer(torch.ones(rows, 2), float(rows))
    torch._dynamo.reset()


def _run_in_fork(text: str) -> dict[str, Any]:
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe()
    process = fork.Process(target=_child, args=(text, there))
    process.start()
    there.close()
    try:
        answer: dict[str, Any] = here.recv() if here.poll(SECONDS) else {"error": "no answer in time"}
    except EOFError:
        answer = {"error": "died"}
    process.kill()
    process.join()
    return answer
