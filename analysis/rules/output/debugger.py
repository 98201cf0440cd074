"""GM206: a debugger in traced code."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

_CALLS = {
    "builtins.breakpoint": "GB0059",
    "pdb.set_trace": "GB0007",
    "ipdb.set_trace": "GB0007",
    "pdb.post_mortem": "GB0007",
}


class Debugger(Rule):
    """
    What it does:
        Finds `breakpoint()` and `pdb.set_trace()` in code that is traced.

    Why it breaks:
        A debugger stops the program; TorchDynamo ends the graph there and starts another one behind it.

    Example:
        breakpoint()

    Use instead:
        if not torch.compiler.is_compiling():
            breakpoint()

    Mends:
        only while not compiling

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM206"
    name = "debugger"
    message = "{call}() stops in a debugger: the graph breaks here"
    advice = "Take it out, or debug with torch.compile disabled."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    if not torch.compiler.is_compiling():
        breakpoint()
    return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _CALLS

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        return Break(_CALLS[event.callee], fill={"call": event.callee.removeprefix("builtins.")})
