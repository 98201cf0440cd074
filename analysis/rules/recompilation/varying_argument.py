"""GM702: a number argument that differs from call to call."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule

#: where a parameter is a tensor in one call, and None, a number or a function in another
ONE_KIND = "Pass one kind of value in all calls, or compile one function for each kind."


class VaryingArgument(Rule):
    """
    What it does:
        Finds numbers, bools and None that callers in sight pass to a compiled function, and that differ from call
        to call: loop indices, steps, schedules, lengths of growing lists.

    Why it breaks:
        It does not break the graph: the guard `step == 0` fails, and the function is compiled anew. An int or float
        is compiled for any value then (torch 2.13), but not where the trace needs its value: as the count of a
        loop, as an index of a list or `nn.ModuleList`, as `p` of a dropout; each value is compiled by itself there,
        up to `recompile_limit` (8). A bool or None is compiled once for each.

    Example:
        for step in range(steps):
            update(x, step)

    Use instead:
        for step in range(steps):
            update(x, torch.tensor(step))

    Mends:
        a 0-d tensor, where the function only computes with the number; `dynamic=True` for an int

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM702"
    name = "varying-argument"
    message = "`{subject}` is {before} in one call of `{function}` and {after} in another: compiled {again}"
    advice = "Pass a 0-d tensor, or a number that does not change."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def scale(x, step):
    return x / (step + 1)

def calls():
    for step in range(3):
        scale(torch.ones(4), torch.tensor(step))
""",
        """
import torch

@torch.compile
def scale(x, step):
    return x / 2

def calls():
    for step in range(3):
        scale(torch.ones(4), step)
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def scale(x, step):
    return x / (step + 1)

def calls():
    for step in range(3):
        scale(torch.ones(4), step)
""",
        """
import torch

@torch.compile
def unroll(x, times):
    for _ in range(times):
        x = torch.tanh(x)
    return x

def calls():
    for times in (2, 3, 4):
        unroll(torch.ones(4), times)
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.kind not in ("argument", "item", "type") or variation.path[0][0] != "argument":
            return None
        if not (variation.number or variation.beside_number):
            return None
        if any(value[0] == "str" for value in variation.changes[0] if isinstance(value, tuple)):
            return None
        if any(step[0] in ("attribute", "keyword", "default", "closure") for step in variation.path):
            return None
        advice = ONE_KIND if variation.of_kinds else ""
        return Break(None, fill=variation.filled(), effect="recompiles", advice=advice)
