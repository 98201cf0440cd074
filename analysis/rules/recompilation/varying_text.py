"""GM703: a string argument with many values."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class VaryingText(Rule):
    """
    What it does:
        Finds strings that callers in sight pass to a compiled function, and that differ from call to call: names of
        tasks, modes, layers.

    Why it breaks:
        It does not break the graph: TorchDynamo guards on the whole string (`name == 'red'`) where the trace reads
        it, and compiles the function once for each value, up to `recompile_limit` (8, torch 2.13). A string that is
        passed but not read is not guarded.

    Example:
        for task in tasks:
            heads(x, task)

    Use instead:
        for task in tasks:
            head = heads[task]
            head(x)

    Mends:
        none: choose by the string outside of what is compiled

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM703"
    name = "varying-text"
    message = (
        "`{subject}` is {before} in one call of `{function}` and {after} "
        "in another: compiled {again}, once for each string"
    )
    advice = "Choose by the string outside of the compiled function."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

tables = {"red": torch.ones(4), "green": torch.zeros(4), "blue": torch.rand(4)}

@torch.compile
def shift(x, table):
    return x + table

def calls():
    for name in tables:
        shift(torch.ones(4), tables[name])
""",
    )
    invalid: ClassVar = (
        """
import torch

tables = {"red": torch.ones(4), "green": torch.zeros(4), "blue": torch.rand(4)}

@torch.compile
def shift(x, name):
    return x + tables[name]

def calls():
    for name in tables:
        shift(torch.ones(4), name)
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.kind in ("mode", "keys", "dtype") or not any(
            isinstance(value, tuple) and value[0] == "str" for value in variation.changes[0]
        ):
            return None
        if variation.path[0][0] != "argument" or any(step[0] == "attribute" for step in variation.path):
            return None
        return Break(None, fill=variation.filled(), effect="recompiles")
