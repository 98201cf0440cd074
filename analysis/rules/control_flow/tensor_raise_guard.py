"""GM102: an exception that is raised when a tensor's value is bad."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Branch, Event
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence, scalar_evidence


class TensorRaiseGuard(Rule):
    """
    What it does:
        Finds `if condition: raise ...` whose condition is a tensor.

    Why it breaks:
        The test is a branch on data that does not exist while TorchDynamo traces, although nobody expects it to be
        taken.

    Example:
        if (x < 0).any():
            raise ValueError("negative")

    Use instead:
        torch._assert_async(~(x < 0).any(), "negative")

    Mends:
        the check as an assertion inside the graph; eager code keeps its exception

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM102"
    name = "tensor-raise-guard"
    message = "this check raises depending on the value of a Tensor: the graph breaks here"
    advice = "torch._assert_async keeps the check inside the graph; it raises RuntimeError, on CUDA asynchronously."
    events = (Branch,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    if x.dim() != 1:
        raise ValueError(f"expected one dimension, not {x.dim()}")
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
    if not torch.all(x >= 0):
        raise ValueError("negative")
    return x.sqrt()

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Branch)
        if event.kind != "raise":
            return None
        why = evidence(event.value) or scalar_evidence(event.value)
        return Break("GB0170", *why) if why is not None else None
