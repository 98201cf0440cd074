"""GM704: a list or dict whose length or keys differ from call to call."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class VaryingContainer(Rule):
    """
    What it does:
        Finds lists, tuples and dicts that reach compiled code with another length, or with other keys, in another
        call in sight; `*args` and `**kwargs` too.

    Why it breaks:
        It does not break the graph: TorchDynamo unrolls containers, so it guards on the length of a list
        (`len(parts) == 2`) and on the keys that the trace reads, and compiles once for each. There is no graph for
        any length.

    Example:
        parts = []
        for x in batches:
            parts.append(x)
            combine(parts)

    Use instead:
        parts = []
        for x in batches:
            parts.append(x)
        combine(parts)

    Mends:
        none: give it one tensor, or a container that always has the same length

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM704"
    name = "varying-container"
    message = "`{subject}` has another length or other keys in another call of `{function}`: compiled {again}"
    advice = "Pass one tensor (`torch.stack`), or pad the container to one length."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def combine(parts):
    return torch.stack(parts).sum(0)

def calls():
    for i in range(3):
        combine([torch.ones(4), torch.zeros(4)])
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def combine(parts):
    return torch.stack(parts).sum(0)

def calls():
    parts = []
    for i in range(3):
        parts.append(torch.ones(4))
        combine(parts)
""",
        """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.losses = []

    def forward(self, x):
        self.losses.append(x.mean())
        return x * 2

def calls():
    net = torch.compile(Net())
    for i in range(3):
        net(torch.ones(4))
""",
        """
import torch

@torch.compile
def loss(batch):
    out = batch["x"] * 2
    if "mask" in batch:
        out = out * batch["mask"]
    return out

def calls():
    x = torch.ones(4)
    loss({"x": x})
    loss({"x": x, "mask": x})
    loss({"x": x})
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.kind not in ("length", "keys", "contains"):
            return None
        advice = ""
        if variation.write is not None and variation.write.traced:
            advice = "Return what is to be kept, and put it into the container behind the compiled call."
        return Break(None, fill=variation.filled(), effect="recompiles", advice=advice)
