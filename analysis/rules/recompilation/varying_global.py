"""GM711: a global, or what is reached from one, that is set between calls."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class VaryingGlobal(Rule):
    """
    What it does:
        Finds globals that traced code reads and that differ between the calls in sight.

    Why it breaks:
        It does not break the graph: TorchDynamo guards on the value (`G['SCALE'] == 2`). Other than an argument, an
        int that is reached from a global is never compiled for any value: each one compiles anew, up to
        `recompile_limit` (8, torch 2.13). A float is, after its first change.

    Example:
        SCALE += 1
        scaled(x)

    Use instead:
        scaled(x, torch.tensor(scale))

    Mends:
        a 0-d tensor instead of an int or float

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM711"
    name = "varying-global"
    message = "the global `{subject}` is {before} in one call of `{function}` and {after} in another: compiled {again}"
    advice = "Pass the value to the function as a 0-d tensor."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

STEP = 0

@torch.compile
def work(x):
    return x.exp()

def calls():
    global STEP
    for i in range(3):
        work(torch.ones(4))
        STEP += 1
""",
    )
    invalid: ClassVar = (
        """
import torch

SCALE = 1

@torch.compile
def scaled(x):
    return x * SCALE

def calls():
    global SCALE
    for i in range(3):
        SCALE += 1
        scaled(torch.ones(4))
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.path[0][0] != "global" or (variation.write is not None and variation.write.traced):
            return None
        if variation.kind in ("length", "keys", "contains"):  # what it holds differs: `varying-container`
            return None
        return Break(None, fill=variation.filled(), effect="recompiles")
