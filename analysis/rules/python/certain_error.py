"""GM509: the program raises there, whatever its inputs are."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Error, Event
from graphmend.analysis.rules.rule import Break, Context, Rule


class CertainError(Rule):
    """
    What it does:
        Finds operations that raise on every run that gets there: names that nothing defines or that are not bound yet,
        arguments that do not fit a function of the program or of torch, methods that a Tensor does not have, ...

    Why it breaks:
        TorchDynamo cannot trace an operation that fails: it ends the graph, and Python raises the exception behind it,
        also where the program catches it (torch 2.13).

    Example:
        torch.sum(x, dimension=1)

    Use instead:
        torch.sum(x, dim=1)

    Mends:
        none: the program has to be corrected

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM509"
    name = "certain-error"
    message = "{what}: the graph breaks here, and Python raises"
    advice = "Correct the program."
    events = (Error,)
    valid: ClassVar = (
        """
import torch

def scaled(x, by=2):
    return x * by

@torch.compile
def f(x):
    y = x + 1
    z = scaled(y)
    del y
    return torch.sum(z, dim=0)

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

def scaled(x, by):
    return x * by

@torch.compile
def f(x):
    y = x + 1
    try:
        return scaled(y)
    except TypeError:
        return y

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Error)
        return Break(event.gb_id, fill={"what": event.what})
