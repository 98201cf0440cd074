"""GM205: a call into the world outside the program, or into a library that Dynamo does not trace."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.events import Call, Event
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.torch_facts import TorchFacts

#: judged by rules of their own
_ELSEWHERE = frozenset({"torch", "builtins", "logging", "warnings", "tqdm", "pdb", "ipdb", "pprint"})
#: features of the language rather than of the world around the program: GM501
PYTHON = frozenset({
    "copy", "inspect", "importlib", "dataclasses", "functools", "types", "typing", "decimal", "fractions", "contextlib", "weakref",
    "operator", "itertools", "collections", "enum", "abc", "numbers", "statistics", "heapq", "bisect", "json", "re", "string",
    "textwrap", "struct", "asyncio", "contextvars", "ast", "traceback", "ctypes", "array",
})  # fmt: skip


class Environment(Rule):
    """
    What it does:
        Finds calls that ask or change the world around the program (time, random numbers, files, the environment, processes, threads),
        and calls into libraries that TorchDynamo is told not to trace.

    Why it breaks:
        What they answer may change from call to call, so it can't be put into a graph. TorchDynamo ends the graph, makes the call, and
        starts another one.

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
    events = (Call,)
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
        return root not in _ELSEWHERE and root not in PYTHON and torch.refusal(callee) is not None

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        return Break(context.torch.refusal(event.callee), fill={"call": event.callee})
