"""GM203: a warning is given while tracing."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_CALLS = {
    "warnings.warn": "GB0007",
    "warnings.warn_explicit": "GB0007",
    "warnings.simplefilter": "GB0092",
    "warnings.filterwarnings": "GB0092",
    "warnings.resetwarnings": "GB0092",
    "warnings.showwarning": "GB0007",
}


class Warnings(Rule):
    """
    What it does:
        Finds `warnings.warn` and changes of the warning filters in code that is traced.

    Why it breaks:
        TorchDynamo does not trace into `warnings` (torch 2.13): it ends the graph, warns, and starts another one.

    Example:
        warnings.warn("mask is ignored")

    Use instead:
        graphmend.runtime.emit(warnings.warn, "mask is ignored")

    Mends:
        warning from inside the graph, or only while not compiling

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM203"
    name = "warnings"
    message = "{call}() warns: the graph breaks here"
    advice = "Warn from inside the graph (graphmend.runtime.emit), or only while not compiling."
    events = (Call,)
    valid: ClassVar = (
        """
import warnings

import torch

@torch.compile
def f(x, **options):
    if "old" in options:
        warnings.warn("old is deprecated")
    return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import warnings

import torch

@torch.compile
def f(x):
    y = x + 1
    warnings.warn("careful", DeprecationWarning, stacklevel=2)
    return y * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _CALLS

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        return Break(_CALLS[event.callee], fill={"call": event.callee})
