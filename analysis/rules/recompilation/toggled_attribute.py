"""GM707: an attribute that is set between calls."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class ToggledAttribute(Rule):
    """
    What it does:
        Finds attributes that traced code reads and that differ between the calls in sight: flags and strengths that
        are set from outside, `train()` and `eval()` where the module has a layer that asks for it, numbers by which
        the blocks of a model differ.

    Why it breaks:
        It does not break the graph: TorchDynamo guards on each attribute that the trace reads (`self.features ==
        False`). A bool, string or int of a module is compiled once for each value; a float, and an int of a plain
        object, for any value after the first change (torch 2.13).

    Example:
        for epoch in range(epochs):
            mixup.strength = epoch / epochs
            fast(a, b)

    Use instead:
        for epoch in range(epochs):
            fast(a, b, torch.tensor(epoch / epochs))

    Mends:
        a 0-d tensor instead of an int or float; none for a bool or string: keep one module for each value

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM707"
    name = "toggled-attribute"
    message = "`{subject}` is {before} in one call of `{function}` and {after} in another: compiled {again}"
    advice = "Pass what changes as a tensor argument, or compile one module for each value."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.verbose = False

    def forward(self, x):
        return x.relu() + 1

def calls():
    net = Net()
    fast = torch.compile(net)
    for i in range(3):
        net.verbose = i % 2 == 0
        fast(torch.ones(4))
""",
    )
    invalid: ClassVar = (
        """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.features = False

    def forward(self, x):
        return x + 1 if self.features else x * 2

def calls():
    net = Net()
    fast = torch.compile(net)
    fast(torch.ones(4))
    net.features = True
    fast(torch.ones(4))
    fast(torch.ones(4))
""",
        """
import torch

def calls():
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.1))
    fast = torch.compile(net)
    fast(torch.ones(2, 4))
    net.eval()
    fast(torch.ones(2, 4))
    fast(torch.ones(2, 4))
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.of_another_model:
            return None
        if variation.kind != "attribute" or (variation.write is not None and variation.write.traced):
            return None
        return Break(None, fill=variation.filled(), effect="recompiles")
