"""One arm of bench/speed.py: a process that builds a model, compiles it, and makes calls when it is its turn.

It reads commands from stdin and answers each with a line of JSON on stdout; what the model itself writes goes to
stderr. Time is that of the processor, user and system, of the process and of those that it has waited for (the C++
compiler is one); beside it stands the time on the clock, which says little on a busy machine.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

#: calls that are no steady ones yet: each of the two inputs compiles, and again where a size has turned out to change
_WARM = 5


class Spent(NamedTuple):
    """Seconds."""

    processor: float
    clock: float
    compilers: float
    """The part of the processor time that other programs took."""


def _used(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def _processor_time() -> float:
    return _used(resource.RUSAGE_SELF) + _used(resource.RUSAGE_CHILDREN)


def _spent(work: Callable[[], Any]) -> Spent:
    before = (_processor_time(), time.perf_counter(), _used(resource.RUSAGE_CHILDREN))
    work()
    after = (_processor_time(), time.perf_counter(), _used(resource.RUSAGE_CHILDREN))
    return Spent(*(round(end - start, 4) for start, end in zip(before, after, strict=True)))


class _Memory:
    """The highest memory, in MB, since the last look: of the process, or of the allocator of a device."""

    def __init__(self, device: str) -> None:
        self._cuda = device.startswith("cuda")
        self._resettable = True

    def reset(self) -> None:
        if self._cuda:
            import torch

            torch.cuda.reset_peak_memory_stats()
            return
        try:
            Path("/proc/self/clear_refs").write_text("5")  # Linux: the peak begins anew at what is held
        except OSError:
            self._resettable = False

    def peak(self) -> float:
        if self._cuda:
            import torch

            return torch.cuda.max_memory_allocated() / 2**20
        if self._resettable:
            lines = Path("/proc/self/status").read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def builders() -> dict[str, Callable[..., Any]]:
    """All models by their rows' names."""
    from paper_models import ROWS
    from todays_models import TODAY

    return {row: builder for row, (builder, *_) in ROWS.items()} | TODAY


def prepare(device: str, options: dict[str, str]) -> None:
    """Compiles almost nothing: what the first compilation on a machine costs whatever the model is, as the headers of
    the C++ compiler, imports and questions about the processor, is none of the model's cold time.
    """
    import torch

    torch.compile(_almost_nothing, **options)(torch.ones(64, device=device))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def _almost_nothing(x: Any) -> Any:
    return x.sin().sum()


class _Compiled:
    """A model that TorchDynamo compiles in its first calls, and what its calls cost."""

    def __init__(self, row: str, size: str, device: str, backend: str) -> None:
        import torch
        from paper_models import SIZES

        torch.manual_seed(0)
        torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
        model, inputs = builders()[row](SIZES[size])
        self._model = model.eval().to(device)
        self._inputs = [{key: value.to(device) for key, value in one.items()} for one in inputs]
        self._cuda, self._memory = device.startswith("cuda"), _Memory(device)
        options = {"mode": "reduce-overhead"} if self._cuda else {"backend": backend}
        prepare(device, options)
        self._step = torch.compile(self._model, **options)

    def first(self) -> dict[str, Any]:
        """The first calls."""
        from torch._dynamo.utils import counters

        found: dict[str, Any] = {"start": _processor_time()}
        self._memory.reset()
        found["cold"] = _spent(lambda: self._call(0))
        found["graphs"] = counters["stats"]["unique_graphs"]
        found["warm"] = _spent(lambda: [self._call(number) for number in range(1, _WARM)])
        found |= {"graphs_in_all": counters["stats"]["unique_graphs"], "memory_cold": self._memory.peak()}
        self._memory.reset()
        self._call(0), self._call(1)
        return found | {"memory": self._memory.peak()}

    def turn(self, calls: int) -> dict[str, Any]:
        spent = _spent(lambda: [self._call(number) for number in range(calls)])
        return {"call": [round(each / calls, 6) for each in (spent.processor, spent.clock)]}

    def outputs(self, file: str) -> dict[str, Any]:
        """Writes what the model answers, compiled and eagerly."""
        import torch
        from paper_table import tensors

        compiled = [[each.cpu() for each in tensors(self._call(number))] for number in range(len(self._inputs))]
        eager = [[each.cpu() for each in tensors(self._model(**one))] for one in self._inputs]
        torch.save({"compiled": compiled, "eager": eager}, file)
        return {}

    def profile(self) -> dict[str, Any]:
        return profiled(lambda: self._call(0))

    def _call(self, number: int) -> Any:
        import torch

        found = self._step(**self._inputs[number % len(self._inputs)])
        if self._cuda:
            torch.cuda.synchronize()
        return found


def serve(row: str, size: str, device: str, backend: str) -> None:
    """Compiles, says what that cost, and does what stdin asks for until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    import torch

    def say(found: dict[str, Any]) -> None:
        print(json.dumps(found), file=answers, flush=True)

    with torch.no_grad():
        compiled = _Compiled(row, size, device, backend)
        say(compiled.first())
        for line in sys.stdin:
            asked, _, argument = line.strip().partition(" ")
            if asked == "turn":
                say(compiled.turn(int(argument)))
            elif asked == "outputs":
                say(compiled.outputs(argument))
            else:
                say(compiled.profile())


def profiled(call: Callable[[], Any]) -> dict[str, int]:
    """What one call asks of a CUDA device: replays of CUDA graphs, kernels that ran, waits for the device."""
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
    torch.cuda.synchronize()
    events = seen.events()
    host = [event.name for event in events if event.device_type == DeviceType.CPU]
    device = [event.name for event in events if event.device_type == DeviceType.CUDA]
    waits = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")
    return {
        "replays": sum(name.startswith("cudaGraphLaunch") for name in host),
        "kernels": sum(not name.startswith(("Memcpy", "Memset")) for name in device),
        "syncs": sum(name.startswith(waits) for name in host) - 1,  # the last one is ours
    }


if __name__ == "__main__":
    if sys.argv[1] == "--prepare":
        prepare("cpu", {"backend": sys.argv[2]})
    else:
        serve(*sys.argv[1:])
