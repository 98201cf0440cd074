"""GM710: a tensor of another dtype, layout or gradient from call to call."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Recompiles
from graphmend.analysis.rules.rule import Break, Context, Rule


class VaryingTensor(Rule):
    """
    What it does:
        Finds tensors that reach compiled code with another dtype, contiguous here and transposed there, or
        requiring gradients in one call in sight and not in another.

    Why it breaks:
        It does not break the graph: TorchDynamo compiles for a dtype, for the order of strides and for
        `requires_grad` (`tensor 'x' dtype mismatch. expected Float, actual Double`), once for each; there is no
        graph for any of them.

    Example:
        double(x)
        double(x.t())

    Use instead:
        double(x)
        double(x.t().contiguous())

    Mends:
        none: bring the tensors to one dtype and layout before the call

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.recompilation.html
    """

    code = "GM710"
    name = "varying-tensor"
    message = (
        "`{subject}` is another kind of tensor "
        "in another call of `{function}` ({kind}: {before}, then {after}): compiled {again}"
    )
    advice = "Bring the tensors to one dtype and layout before the call."
    events = (Recompiles,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def double(x):
    return x * 2

def calls():
    x = torch.rand(4, 4)
    double(x)
    double(x + 1)
    double(x.clone())
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def double(x):
    return x * 2

def calls():
    double(torch.ones(4))
    double(torch.ones(4, dtype=torch.float64))
    double(torch.ones(4, dtype=torch.int64))
""",
        """
import torch

@torch.compile
def double(x):
    return x * 2

def calls():
    x = torch.rand(4, 4)
    double(x)
    double(x.t())
    double(x)
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Recompiles)
        variation = event.variation
        if variation.of_another_model:
            return None
        if variation.kind not in _KINDS:
            return None
        return Break(None, fill={**variation.filled(), "kind": _KINDS[variation.kind]}, effect="recompiles")


_KINDS = {"dtype": "dtype", "contiguous": "contiguous", "gradient": "requires_grad"}
