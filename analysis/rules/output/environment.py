"""GM205: a call into the world outside the program, or into a library that Dynamo does not trace."""

from __future__ import annotations

import sys
from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event, Subscript
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.rules.rule import PYTHON, Break, Context, Rule, may_refuse, refusal
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.measured_numpy import SCALAR_UNLESS_SIZED, hands_out_number
from graphmend.analysis.torch_facts.options import traced_with

#: judged by rules of their own
_ELSEWHERE = frozenset({"torch", "builtins", "logging", "warnings", "tqdm", "pdb", "ipdb", "pprint"})


class Environment(Rule):
    """
    What it does:
        Finds calls that ask or change the world around the program (time, random numbers, files, the environment,
        processes, threads), and calls into libraries that TorchDynamo is told not to trace.

    Why it breaks:
        What they answer may change from call to call, so it can't be put into a graph. TorchDynamo ends the graph,
        makes the call, and starts another one.

    Example:
        start = time.perf_counter()

    Use instead:
        start = None if torch.compiler.is_compiling() else time.perf_counter()

    Mends:
        only while not compiling, where the result is not needed; `random.uniform` for `random.random`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM205"
    name = "environment"
    message = "TorchDynamo does not trace {call}(): the graph breaks here"
    advice = "Call it outside of the compiled function and pass the result in."
    events = (Call, Subscript)
    valid: ClassVar = (
        """
import math
import os
import random

import torch

@torch.compile
def f(x):
    return x + math.sqrt(2.0) + random.randint(0, 3) + len(os.path.join("a", "b")) + int(os.getenv("SOME_NUMBER", "1"))

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import time

import torch

@torch.compile
def f(x):
    start = time.time()
    y = x + 1
    return y, start

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        root = callee.partition(".")[0]
        if callee in SCALAR_UNLESS_SIZED:
            return True
        if root in _ELSEWHERE or root in PYTHON:
            return False
        return may_refuse(callee, torch) or torch.refusal(callee.rpartition(".")[0]) is not None

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Subscript):
            changes = event.store and isinstance(event.value, ExternalName) and event.value.name == "os.environ"
            return Break("GB0007", fill={"call": "os.environ.__setitem__"}) if changes else None
        assert isinstance(event, Call)
        if hands_out_number(event.callee, len(event.arguments), event.keywords.keys()):
            return Break("GB0033", fill={"call": event.callee})
        gb_id = refusal(event, context)
        if gb_id is None and traced_with(context.mode.options, event.callee):
            return None
        owner = event.callee.rpartition(".")[0]
        if gb_id is None and isinstance(event.receiver, ExternalInstance):
            gb_id = context.torch.refusal(owner)  # what a refused class makes is as opaque as the class
        if gb_id is None or (isinstance(event.receiver, ExternalInstance) and not _known(event.receiver)):
            return None
        return Break(gb_id, fill={"call": event.callee}, default_only=context.torch.default_only(event.callee))


def _known(value: ExternalInstance) -> bool:
    """Whether it is sure that an instance is of its class: made here, or of the standard library, which has few
    look-alikes."""
    return value.made_inside or value.cls.partition(".")[0] in sys.stdlib_module_names
