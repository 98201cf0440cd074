"""GM506: a function of Python is called in a form that Dynamo does not trace."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.rules.arguments import refused_argument
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.arguments import DEMANDS


class RefusedForm(Rule):
    """
    What it does:
        Finds calls of Python's own functions that TorchDynamo traces, but not with these arguments: names of
        attributes that hold a tensor's value, options that have no name in its model, ...

    Why it breaks:
        TorchDynamo models builtins and the standard library one by one, for the usual arguments (torch 2.13).

    Example:
        getattr(module, f"layer{index_tensor}")

    Use instead:
        getattr(module, f"layer{index}")

    Mends:
        none: pass what the function takes while it is traced

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM506"
    name = "refused-form"
    message = "TorchDynamo does not trace {call} with this argument, it {reason}: the graph breaks here"
    advice = "Pass what the function takes while it is traced."
    events = (Call,)
    valid: ClassVar = (
        """
import collections
import itertools

import torch

@torch.compile
def f(x):
    last = collections.deque([1, 2], 2)
    pairs = list(itertools.product(last, repeat=2))
    return x * len(pairs) + getattr(x, "ndim", 1)

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import random

import torch

@torch.compile
def f(x):
    y = x + 1
    numbers = random.Random(x=1)
    return y * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in DEMANDS and not callee.startswith(("torch.", "numpy."))

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        demand = refused_argument(event)
        if demand is None:
            return None
        call = event.callee.removeprefix("builtins.") + "()"
        return Break(demand.gb_id, fill={"call": call, "reason": demand.reason})
