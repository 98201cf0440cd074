"""Times of a call: eager, compiled, and the first compiled one. On CUDA by events, else by the clock; milliseconds,
medians.
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo

BACKENDS = ("inductor", "aot_eager", "eager")
"""Tried in this order: the first needs a C++ compiler, or Triton on CUDA."""
CALLS, LEAST = 50, 5
SECONDS = 2.0
WARM_UP = 3


def measure(plain: Any, call: Callable[[Any], Any], device: str) -> dict[str, Any]:
    """Times `call(plain)` and `call(compiled)`. Raises what the last backend raises where none works."""
    with torch.compiler.set_stance("force_eager"):
        eager = _steady(lambda: call(plain), device)
    for backend in BACKENDS:
        torch._dynamo.reset()
        try:
            compiled = torch.compile(plain, backend=backend)
            cold = _once(lambda: call(compiled), device)  # noqa: B023
        except Exception:
            if backend == BACKENDS[-1]:
                raise
            continue
        steady = _steady(lambda: call(compiled), device)  # noqa: B023
        syncs = _syncs(lambda: call(compiled), device)  # noqa: B023
        return {"eager": eager, "compiled": steady, "cold": cold, "backend": backend, "syncs": syncs}
    raise AssertionError("the last backend returns or raises")


def _steady(call: Callable[[], Any], device: str) -> float:
    """The median after a few calls that do not count."""
    for _ in range(WARM_UP):
        call()
    until = time.monotonic() + SECONDS
    times: list[float] = []
    while len(times) < LEAST or (len(times) < CALLS and time.monotonic() < until):
        times.append(_once(call, device))
    return statistics.median(times)


def _once(call: Callable[[], Any], device: str) -> float:
    if not device.startswith("cuda"):
        began = time.perf_counter()
        call()
        return (time.perf_counter() - began) * 1e3
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    torch.cuda.synchronize(device)
    first.record()
    call()
    last.record()
    torch.cuda.synchronize(device)
    return float(first.elapsed_time(last))


def _syncs(call: Callable[[], Any], device: str) -> int | None:
    """How often one call waits for the device (a `.item()`, a copy to the host); None off CUDA."""
    if not device.startswith("cuda"):
        return None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            call()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return sum("synchroniz" in str(warning.message) for warning in caught)
