"""GM105: a loop whose length is a tensor's value."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.values import tensor_in
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence
from graphmend.analysis.torch_facts import TorchFacts


class TensorLoop(Rule):
    """
    What it does:
        Finds `range(...)` over a tensor.

    Why it breaks:
        How often the loop runs depends on data that does not exist while TorchDynamo traces.

    Example:
        for _ in range(steps):  # a Tensor
            x = x + 1

    Use instead:
        x = x + steps

    Mends:
        none: say the number of rounds as a Python int, or use torch.while_loop

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM105"
    name = "tensor-loop"
    message = "range() over a Tensor: the graph breaks here"
    advice = "Pass the number of rounds as a Python int, or use torch.while_loop."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    for i in range(x.shape[0]):
        x = x + i
    return x

def example_inputs():
    return [(torch.ones(3),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x, n):
    for _ in range(n):
        x = x + 1
    return x

def example_inputs():
    return [(torch.ones(3), torch.tensor(3))]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee == "builtins.range"

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        bound = next((a for a in event.arguments if tensor_in(a) is not None), None)
        why = evidence(bound) if bound is not None else None
        return Break("GB0059", *why) if why is not None else None
