"""GM502: a call of something that is kept out of the graph on purpose."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_CALLS = {
    "torch.compiler.disable.<locals>.call": ("GB0098", "a function under torch.compiler.disable"),
    "torch._dynamo.graph_break": ("GB0025", "torch._dynamo.graph_break"),
    "torch._dynamo.comptime.comptime.graph_break": ("GB0030", "comptime.graph_break"),
    "torch._dynamo.step_unsupported": ("GB4636", "torch._dynamo.step_unsupported"),
    "torch._dynamo.skip_frame": ("GB0025", "torch._dynamo.skip_frame"),
}


class DisabledCall(Rule):
    """
    What it does:
        Finds calls of functions under `torch.compiler.disable`, and `torch._dynamo.graph_break()`.

    Why it breaks:
        Somebody asked for it: the graph ends before the call and another one starts behind it.

    Example:
        @torch.compiler.disable
        def log(x): ...

    Use instead:
        log(x) outside of the compiled function

    Mends:
        none

    References:
        https://docs.pytorch.org/docs/2.13/generated/torch.compiler.disable.html
    """

    code = "GM502"
    name = "disabled-call"
    message = "this calls {call}: the graph breaks here"
    advice = "Leave it if it is meant; else call it outside of the compiled function."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

def helper(x):
    return x * 2

@torch.compile
def f(x):
    return helper(x) + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compiler.disable
def helper(x):
    return x * 2

@torch.compile
def f(x):
    return helper(x + 1) + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _CALLS

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        gb_id, what = _CALLS[event.callee]
        return Break(gb_id, fill={"call": what})
