"""GM606: a function of torch is called with an argument that Dynamo does not put into a graph."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.rules.arguments import refused_argument
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.arguments import DEMANDS


class RefusedArguments(Rule):
    """
    What it does:
        Finds calls of torch that TorchDynamo traces, but not with these arguments: operands of `torch.cond` and its
        kind that are no tensors, options by position, devices that do not exist, ...

    Why it breaks:
        TorchDynamo models each of these functions by hand, for the arguments that it documents (torch 2.13).

    Example:
        torch.cond(p, f, g, {"x": x})

    Use instead:
        torch.cond(p, f, g, (x,))

    Mends:
        none: pass what the function takes while it is traced

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM606"
    name = "refused-arguments"
    message = "TorchDynamo does not trace {call} with this argument, it {reason}: the graph breaks here"
    advice = "Pass what the function takes while it is traced."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    y = x + 1
    return torch.cond(y.sum() > 0, torch.sin, torch.cos, (y,))

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x: torch.Tensor):
    y = x + 1
    y.set_(torch.ones(8).untyped_storage(), 0, (4,), (1,))
    return y * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in DEMANDS and callee.startswith(("torch.", "numpy."))

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        demand = refused_argument(event)
        if demand is None:
            return None
        call = event.callee.removeprefix("builtins.") + "()"
        return Break(demand.gb_id, fill={"call": call, "reason": demand.reason})
