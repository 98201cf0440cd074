"""GM103: an assertion on a tensor in a form that Dynamo does not turn into an operation."""

from __future__ import annotations

import ast
from typing import ClassVar

from graphmend.analysis.interpreter.events import Branch, Event
from graphmend.analysis.lattice.values import Const
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence


class TensorAssert(Rule):
    """
    What it does:
        Finds `assert` on a tensor with `not`, `and`, `or` or a chained comparison around it, or with a message that is
        no string literal.

    Why it breaks:
        TorchDynamo turns `assert tensor` and `assert tensor, "literal"` into an assertion inside the graph, and only
        those (torch 2.13). In any other form the assertion is a branch on data.

    Example:
        assert not torch.isnan(x).any(), f"NaN in {name}"

    Use instead:
        assert ~torch.isnan(x).any(), "NaN"

    Mends:
        the operators become those of tensors, the message a literal

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM103"
    name = "tensor-assert"
    message = "this form of assert on a Tensor breaks the graph"
    advice = (
        'Dynamo keeps `assert tensor, "literal"` in the graph: use ~, & and | for not, and, or, and a plain string.'
    )
    events = (Branch,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    assert (x >= 0).all(), "negative"
    assert x.shape[0] == 4, f"bad shape {x.shape}"
    return x.sqrt()

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    assert not torch.isnan(x).any(), "nan"
    return x.sqrt()

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x):
    assert (x >= 0).all(), f"bad {x.shape}"
    return x.sqrt()

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Branch)
        if not isinstance(event.statement, ast.Assert):
            return None
        why = evidence(event.value)
        if why is None:
            return None
        plain = event.kind == "assert" and event.node is event.statement.test
        if plain and _literal(event):
            return None
        return Break("GB0170", *why)


def _literal(event: Branch) -> bool:
    """No message, or one that is a constant string in the source."""
    assert isinstance(event.statement, ast.Assert)
    message = event.statement.msg
    if message is None:
        return True
    return (
        isinstance(message, ast.Constant)
        and isinstance(message.value, str)
        and (event.message is None or isinstance(event.message, Const))
    )
