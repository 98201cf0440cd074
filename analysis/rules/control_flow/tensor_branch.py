"""GM101: a branch on a tensor's value."""

from __future__ import annotations

import ast
from typing import ClassVar

from graphmend.analysis.interpreter.events import Branch, Event
from graphmend.analysis.rules.rule import Break, Context, Rule, advice_on_draws, evidence, scalar_evidence


class TensorBranch(Rule):
    """
    What it does:
        Finds `if`, `elif`, `while`, conditional expressions, `and`, `or`, `not`, chained comparisons, comprehension
        filters and `match` that ask for the truth of a tensor.

    Why it breaks:
        Which way to go depends on data that does not exist while TorchDynamo traces. It ends the graph, runs the test
        in Python, and starts another graph on the side that was taken. Inside a loop, `try` or most `with` blocks it
        can't resume and gives the whole frame up.

    Example:
        if x.sum() > 0:
            y = x + 1
        else:
            y = x * 3

    Use instead:
        y = torch.where(x.sum() > 0, x + 1, x * 3)

    Mends:
        predication by `torch.where`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM101"
    name = "tensor-branch"
    message = "{what} depends on the value of a Tensor: the graph breaks here"
    advice = "Compute both sides and choose with torch.where, or use torch.cond where one side is expensive."
    events = (Branch,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    if x.shape[0] > 3 and x.dtype == torch.float32:
        return x + 1
    return x if x is None else x * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x, scale: float):
    return torch.where(x.sum() > 0, x, -x) if scale > 1.0 else max(x.sum(), x.mean())

def example_inputs():
    return [(torch.ones(4), 2.0)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    if x.sum() > 0:
        return x + 1
    return x * 3

def example_inputs():
    return [(torch.ones(4),), (-torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x: torch.Tensor):
    y = x * 2
    while y.mean() < 100 and y.max() > 0:
        y = y * 2
    return y + 1 if not y.isnan().any() else y

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Branch)
        if event.kind == "raise" or isinstance(event.statement, ast.Assert):
            return None
        why = evidence(event.value) or scalar_evidence(event.value)
        if why is None:
            return None
        advice = advice_on_draws(why[0], context.torch)
        return Break("GB0170", *why, fill={"what": _WORDS.get(event.kind, "the branch")}, advice=advice)


_WORDS = {
    "if": "the branch", "while": "the loop's condition", "ternary": "the conditional expression", "and": "`and`",
    "or": "`or`", "not": "`not`", "match": "`match`", "filter": "the comprehension's filter",
}  # fmt: skip
