"""GM605: a context manager that Dynamo does not enter."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.calls.gradient_mode import GRADIENT_MODES
from graphmend.analysis.interpreter.events import Call, Event, With
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

#: measured on torch 2.13
_CONTEXTS = {
    "torch.device": "GB0142", "torch.autograd.graph.saved_tensors_hooks": "GB0142",
    "torch.autograd.graph.save_on_cpu": "GB0142", "torch.autograd.profiler.emit_nvtx": "GB0142",
    "torch.autograd.detect_anomaly": "GB0142", "torch.autograd.set_detect_anomaly": "GB0142",
    "torch.autograd.anomaly_mode.detect_anomaly": "GB0142", "threading.Lock": "GB0142", "threading.RLock": "GB0142",
    "threading.Semaphore": "GB0142", "threading.Condition": "GB0142", "multiprocessing.Lock": "GB0142",
    "concurrent.futures.ThreadPoolExecutor": "GB0142", "concurrent.futures.ProcessPoolExecutor": "GB0142",
    "concurrent.futures.thread.ThreadPoolExecutor": "GB0142",
    "torch.backends.cudnn.flags": "GB0142", "torch.random.fork_rng": "GB0142",
    "tempfile.TemporaryDirectory": "GB0142", "tempfile.NamedTemporaryFile": "GB0142",
    "torch.backends.cuda.sdp_kernel": "GB0142",
}  # fmt: skip
#: those that Dynamo enters only where the code that it traces makes them
_MADE_INSIDE = GRADIENT_MODES | {"contextlib.ExitStack"}
_ENTERS = frozenset({"contextlib.ExitStack.enter_context"})


class RefusedContext(Rule):
    """
    What it does:
        Finds `with` over context managers that TorchDynamo does not model, and over such as it enters only where the
        traced code makes them: `torch.no_grad()` and those of the program's own classes.

    Why it breaks:
        What they do on entry and exit can't be put into a graph, and a break inside them loses the whole frame (torch
        2.13).

    Example:
        with torch.device("cuda"):
            y = torch.ones(4)

    Use instead:
        y = torch.ones(4, device="cuda")

    Mends:
        none, mostly: enter the context around the compiled call

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM605"
    name = "refused-context"
    message = "TorchDynamo does not enter {call}: the graph breaks here"
    advice = "Enter the context outside of the compiled function."
    events = (With, Call)
    valid: ClassVar = (
        """
import contextlib

import torch

@torch.compile
def f(x):
    with torch.no_grad(), contextlib.nullcontext(), torch.profiler.record_function("part"):
        return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import contextlib

import torch

@contextlib.contextmanager
def part():
    yield

@torch.compile
def f(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(part())
        return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

class Counted:
    def __init__(self):
        self.times = 0

    def __enter__(self):
        self.times += 1
        return self

    def __exit__(self, *error):
        return None

context = Counted()

@torch.compile
def f(x):
    with context:
        return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x):
    with torch.device("cpu"):
        return x + torch.ones(4)

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import contextlib

import torch

@torch.compile
def f(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _ENTERS

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Call):
            entered = event.arguments[0] if event.arguments else None
            # a stack of contexts is traced, but it can hold only such as are written in Python outside of torch
            if not (isinstance(entered, ExternalInstance) and entered.cls.partition(".")[0] in ("torch", "contextlib")):
                return None
            return Break("GB0007", fill={"call": entered.cls}, effect="skips-frame")
        assert isinstance(event, With)
        entered = event.value
        if isinstance(entered, Instance) and not entered.made_inside:
            return Break("GB0142", fill={"call": f"an existing {entered.info.name}"}, effect="skips-frame")
        gb_id = _CONTEXTS.get(event.callee or "")
        if isinstance(entered, ExternalInstance) and not entered.made_inside and entered.cls in _MADE_INSIDE:
            gb_id = "GB0142"
        if event.callee == "contextlib.contextmanager without yield":
            gb_id = "GB0221"
        if event.callee == "contextlib.contextmanager" and "no enable_trace_contextlib" in context.mode.options:
            gb_id = "GB0263"
        return Break(gb_id, fill={"call": event.callee or "it"}, effect="skips-frame") if gb_id is not None else None
