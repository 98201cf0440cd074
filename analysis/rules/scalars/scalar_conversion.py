"""GM301: a Python number is taken out of a tensor."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.values import Tensor, Value, dtype_kind, is_known_input, is_known_number, tensor_in
from graphmend.analysis.rules.rule import Break, Context, Rule, advice_on_draws, evidence
from graphmend.analysis.torch_facts import TorchFacts

_CONVERSIONS = frozenset({
    "builtins.int", "builtins.float", "builtins.bool", "operator.index", "builtins.complex", "builtins.slice",
})  # fmt: skip
_METHODS = {
    "torch.Tensor.item": "GB0124", "numpy.ndarray.item": "GB0124", "torch.Tensor.tolist": "GB0033",
    "numpy.ndarray.tolist": "GB0033", "torch.Tensor.__int__": "GB0124", "torch.Tensor.__float__": "GB0124",
    "torch.Tensor.__bool__": "GB0124",
}  # fmt: skip


class ScalarConversion(Rule):
    """
    What it does:
        Finds `.item()`, `.tolist()`, `int()`, `float()`, `bool()`, `operator.index()` and `math` functions on tensors.

    Why it breaks:
        The number does not exist while TorchDynamo traces. With default flags it ends the graph, and on CUDA the
        program waits for the device. `.item()` and its like stay in the graph where `capture_scalar_outputs` is on, as
        it is with `fullgraph=True` (torch 2.13).

    Example:
        scale = x.abs().max().item()
        return x / scale

    Use instead:
        scale = x.abs().max()
        return x / scale

    Mends:
        keep the tensor

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM301"
    name = "scalar-conversion"
    message = "{call} takes a Python value out of a Tensor: the graph breaks here"
    advice = "Keep the 0-d Tensor where arithmetic allows, or compile with capture_scalar_outputs."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x, k: float):
    return x * int(k) + float(x.shape[0]) + len(x)

def example_inputs():
    return [(torch.ones(4), 2.0)]
""",
        """
import torch

@torch.compile(fullgraph=True)
def f(x):
    return x * x.sum().item()

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
    return y * y.sum().item()

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x: torch.Tensor):
    y = x + 1
    return y * float(y.sum())

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _CONVERSIONS or callee in _METHODS or callee.startswith("math.")

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        value: Value | None = (
            event.receiver if event.callee in _METHODS else event.arguments[0] if event.arguments else None
        )
        several = event.callee.startswith("math.") or event.callee == "builtins.slice"
        if several and value is not None and tensor_in(value) is None:
            value = next((a for a in event.arguments if tensor_in(a) is not None), value)
        why = evidence(value) if value is not None else None
        tensor = tensor_in(value) if value is not None else None
        if why is None or tensor is None or _is_read(event.callee, tensor):
            return None
        fill = {"call": event.callee.removeprefix("builtins.").removeprefix("torch.Tensor") + "()"}
        if event.callee in _METHODS:
            if event.callee.endswith("tolist") and dtype_kind(tensor.dtype) == "float":
                return Break("GB0109", *why, fill=fill)
            if context.mode.scalars:
                return None
            advice = advice_on_draws(why[0], context.torch)
            return Break(_METHODS[event.callee], *why, default_only=True, fill=fill, advice=advice)
        if event.callee.startswith("math.") or event.callee.endswith("complex"):
            return Break("GB0033", *why, fill=fill)
        if context.mode.scalars:
            return None
        advice = advice_on_draws(why[0], context.torch)
        return Break("GB0124", *why, default_only=True, fill=fill, advice=advice)


def _is_read(callee: str, tensor: Tensor) -> bool:
    """Whether Dynamo carries a conversion out itself, as the tensor is a NumPy number that it knows (torch 2.13)."""
    if callee.startswith("math."):
        return tensor.ndarray and tensor.constant and callee not in ("math.floor", "math.ceil", "math.trunc")
    return is_known_number(tensor) or is_known_input(tensor)
