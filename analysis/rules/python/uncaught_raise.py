"""GM504: every run of the compiled function ends in an exception."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Raise
from graphmend.analysis.rules.rule import Break, Context, Rule


class UncaughtRaise(Rule):
    """
    What it does:
        Finds a `raise` that every run of a compiled function reaches and that nothing catches.

    Why it breaks:
        TorchDynamo does not compile a frame that ends in an exception: it runs eagerly (torch 2.13).

    Example:
        y = x + 1
        raise ValueError("not implemented")

    Use instead:
        raise ValueError("not implemented") before the compiled function is called

    Mends:
        none

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM504"
    name = "uncaught-raise"
    message = "every run of this compiled function ends in this exception: it runs eagerly"
    advice = "Raise before the compiled function is called."
    events = (Raise,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    try:
        raise ValueError("caught")
    except ValueError:
        return x + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    y = x + 1
    raise ValueError("always")

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        return Break("GB0088", effect="skips-frame")
