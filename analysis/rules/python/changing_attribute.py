"""GM503: an int attribute of a module that changes from call to call."""

from __future__ import annotations

import ast
from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, SetAttribute
from graphmend.analysis.lattice.values import Static
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.syntax.nodes import dotted


class ChangingAttribute(Rule):
    """
    What it does:
        Finds int attributes of modules that each call computes from their old value: counters of steps, mostly.

    Why it breaks:
        It does not break the graph: TorchDynamo guards on the number, so every call compiles anew, and after eight of
        them (`recompile_limit`) the function runs eagerly (torch 2.13). A float attribute is traced as an input after
        its first change.

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
        none: make the counter a buffer in `__init__`, or count outside what is compiled

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM503"
    name = "changing-attribute"
    message = "an int attribute changes with each call: every call compiles anew, up to the limit"
    advice = "Make the counter a 0-d buffer, or count outside the compiled code."
    events = (SetAttribute,)
    preview = True
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
        assert isinstance(event, SetAttribute)
        counts = isinstance(event.value, Static) and event.value.type == "int"
        if not (counts and isinstance(event.owner, Instance) and context.is_module(event.owner)):
            return None
        if not (event.augmented or _reads(event.statement, event.node)):
            return None
        return Break(None, likely=bool(event.situation.conditional), effect="recompiles")


def _reads(statement: ast.stmt, target: ast.AST) -> bool:
    """Whether what an assignment binds is computed from the target's old value."""
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute):
        return False
    return any(isinstance(n, ast.Attribute) and dotted(n) == dotted(target) for n in ast.walk(statement.value))
