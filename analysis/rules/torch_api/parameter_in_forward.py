"""GM602: an nn.Parameter is made while tracing."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.values import MarkedTensor, Tensor
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.options import traced_with

_CALLS = frozenset({"torch.nn.Parameter", "torch.nn.parameter.Parameter"})


class ParameterInForward(Rule):
    """
    What it does:
        Finds `nn.Parameter(...)` in traced code.

    Why it breaks:
        A parameter is a leaf of autograd, which a graph can't make; TorchDynamo breaks by default (torch 2.13).

    Example:
        def forward(self, x):
            w = nn.Parameter(torch.ones(4))

    Use instead:
        def __init__(self):
            self.w = nn.Parameter(torch.ones(4))

    Mends:
        none: make it in `__init__`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM602"
    name = "parameter-in-forward"
    message = "an nn.Parameter is made in traced code: the graph breaks here"
    advice = "Make parameters in __init__."
    events = (Call,)
    valid: ClassVar = (
        """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.w

@torch.compile
def f(net, x):
    return net(x)

def example_inputs():
    return [(Net(), torch.ones(4))]
""",
    )
    invalid: ClassVar = (
        """
import torch
from torch import nn

@torch.compile
def f(x):
    w = nn.Parameter(torch.ones(4))
    return x * w

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _CALLS

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        data = event.argument(0, "data")
        if data is None:
            return Break("GB0226")
        options = context.mode.options
        if "export" in options:
            return Break("GB0244")
        if traced_with(options, event.callee):
            if isinstance(data, MarkedTensor) and data.mark("class") is not None:
                return Break("GB0227")
            computed = isinstance(data, Tensor) and not data.graph_input and not data.constant
            return Break("GB0235") if computed and "dynamic" in options else None
        from_outside = isinstance(data, Tensor) and data.graph_input  # it is made before the graph
        return None if from_outside else Break("GB0264")
