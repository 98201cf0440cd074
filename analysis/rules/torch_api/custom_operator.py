"""GM609: an operator of the program's own does not tell what it returns."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import CustomCall, Event
from graphmend.analysis.lattice.values import Static
from graphmend.analysis.rules.rule import Break, Context, Rule

_FAULTS = {
    "no fake": ("GB4315", "has no `register_fake`"),
    "no kernel": ("GB0090", "has kernels for devices alone, and none for tensors without data"),
    "fake raises": ("GB0087", "has a `register_fake` that is not implemented"),
}


class CustomOperator(Rule):
    """
    What it does:
        Finds calls of operators that the program registers with `torch.library` and that TorchDynamo cannot run on
        tensors without data.

    Why it breaks:
        TorchDynamo puts an operator into a graph when it knows what comes out of it, from an implementation that only
        makes empty results: `register_fake`, or one for the key "Meta" (torch 2.13).

    Example:
        @torch.library.custom_op("mine::doubled", mutates_args=())
        def doubled(x: torch.Tensor) -> torch.Tensor: ...

    Use instead:
        @doubled.register_fake
        def _(x):
            return torch.empty_like(x)

    Mends:
        none: register what the operator returns

    References:
        https://docs.pytorch.org/docs/2.13/library.html
    """

    code = "GM609"
    name = "custom-operator"
    message = "the operator {operator} {fault}: the graph breaks here"
    advice = "Register what it returns, with register_fake."
    events = (CustomCall,)
    preview = True
    valid: ClassVar = (
        """
import torch

@torch.library.custom_op("graphmend_valid::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@doubled.register_fake
def _(x):
    return torch.empty_like(x)

@torch.compile
def f(x):
    return doubled(x) + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.library.custom_op("graphmend_invalid::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2

@torch.compile
def f(x):
    y = x + 1
    return doubled(y) + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, CustomCall)
        operator = event.operator
        if "only_allow_pt2_compliant_ops" in context.mode.options:
            fill = {"operator": operator.name}
            if not operator.is_compliant:
                return Break("GB0043", fill={**fill, "fault": "does not say that it keeps to the rules of compilation"})
            if len(operator.schemas) > 1 and any(not _fits(event, i) for i in range(len(event.arguments))):
                return Break("GB0049", fill={**fill, "fault": "has no overload for these arguments"})
        if operator.fault is None:
            return None
        gb_id, fault = _FAULTS[operator.fault]
        likely = operator.fault != "fake raises"  # another module may register it
        return Break(gb_id, likely=likely, fill={"operator": operator.name, "fault": fault})


def _fits(event: CustomCall, position: int) -> bool:
    """Whether some overload may take an argument there, as far as it is a text."""
    value = event.arguments[position]
    if not (isinstance(value, Static) and value.type == "str"):
        return True
    for schema in event.operator.schemas:
        types = schema.partition("(")[2].rpartition("->")[0].split(",")
        if position < len(types) and types[position].split()[:1] in (["str"], ["str?"], ["Device"], ["Device?"]):
            return True
    return False
