"""GM701: an attribute or variable that traced code itself changes from call to call."""

from __future__ import annotations

import ast
from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles, SetAttribute
from graphmend.analysis.lattice.values import Static
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.syntax.nodes import dotted


class ChangingAttribute(Rule):
    """
    What it does:
        Finds attributes that traced code computes from their old value, and that the trace reads: counters of steps,
        decaying factors, flags of a first call; variables around a compiled function (`nonlocal`) too.

    Why it breaks:
        It does not break the graph: TorchDynamo guards on the value (`G['net'].steps == 0`; `self.steps == 0` where the
        module itself is compiled). An int of a module is compiled for exactly this value, so every call compiles anew,
        and after eight of them (`recompile_limit`) the function runs eagerly (torch 2.13). A float, and an int of a
        plain object, is compiled for any value after its first change; a bool once for each.

    Example:
        def forward(self, x):
            self.steps += 1
            return self.layer(x)

    Use instead:
        def __init__(self):
            self.register_buffer("steps", torch.zeros((), dtype=torch.long))

        def forward(self, x):
            self.steps += 1
            return self.layer(x)

    Mends:
        a 0-d buffer or tensor instead of an int or float

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM701"
    name = "changing-attribute"
    message = "`{subject}` changes with each call of `{function}`: compiled {again}"
    advice = "Make the counter a 0-d buffer, or count outside the compiled code."
    events = (SetAttribute, Recompiles)
    valid: ClassVar = (
        """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.steps += 1
        self.width = x.shape[0]
        return x * 2

net = Net()

@torch.compile
def f(x):
    return net(x)

def example_inputs():
    return [(torch.ones(4),), (torch.zeros(4),), (-torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        return x * 2

net = Net()

@torch.compile
def f(x):
    return net(x)

def example_inputs():
    return [(torch.ones(4),), (torch.zeros(4),), (-torch.ones(4),)]
""",
        """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps = self.steps + 1
        return x * self.steps

net = Net()

@torch.compile
def f(x):
    return net(x)

def example_inputs():
    return [(torch.ones(4),), (torch.zeros(4),), (-torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Recompiles):
            written = event.variation.write
            if written is None or not written.traced or event.variation.kind in ("size", "rank", "length", "keys"):
                return None
            return Break(None, fill=event.variation.filled(), effect="recompiles")
        assert isinstance(event, SetAttribute)
        counts = isinstance(event.value, Static) and event.value.type == "int"
        if not (counts and isinstance(event.owner, Instance) and context.is_module(event.owner)):
            return None
        if not (event.augmented or _reads(event.statement, event.node)) or _is_reset(event.owner, event.name):
            return None
        told = {"subject": event.name, "function": "forward", "again": "anew each time, up to the limit"}
        return Break(None, likely=bool(event.situation.conditional), fill=told, effect="recompiles")


def _reads(statement: ast.stmt, target: ast.AST) -> bool:
    """Whether what an assignment binds is computed from the target's old value."""
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute):
        return False
    return any(isinstance(n, ast.Attribute) and dotted(n) == dotted(target) for n in ast.walk(statement.value))


def _is_reset(owner: Instance, name: str) -> bool:
    """Whether a method besides the constructor sets an attribute to a constant: a call may then begin with it."""
    set_in = owner.info.assigned.get(name, ())
    return any(
        info.name != "__init__" and isinstance(value, ast.Constant) and not isinstance(statement, ast.AugAssign)
        for info, statement, value in set_in
    )
