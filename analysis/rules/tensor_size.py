"""GM403: a size, bound or length that is a tensor."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.events import Call, Event, Subscript
from graphmend.analysis.origin import Origin
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.values import Container, Value, tensor_in

#: where a tensor that the graph computes stands for a size; one that comes from outside is read by a guard (torch 2.13)
_SIZES: dict[str, int] = {
    "torch.arange": 0, "torch.zeros": 0, "torch.ones": 0, "torch.empty": 0, "torch.rand": 0, "torch.randn": 0,
    "torch.linspace": 2, "torch.randperm": 0, "torch.eye": 0, "torch.range": 0, "torch.split": 1,
    "torch.Tensor.split": 0, "torch.narrow": 2, "torch.Tensor.narrow": 1, "torch.nn.functional.pad": 1,
    "torch.Tensor.view": 0, "torch.Tensor.reshape": 0, "torch.Tensor.expand": 0, "torch.Tensor.repeat": 0,
    "torch.topk": 1, "torch.Tensor.topk": 0, "torch.Tensor.new_zeros": 0, "torch.Tensor.new_ones": 0,
    "torch.Tensor.chunk": 0,
}  # fmt: skip


class TensorSize(Rule):
    """
    What it does:
        Finds tensors that stand for a size: slice bounds, `arange(n)`, `zeros(n)`, `split(sizes)`, `pad`, `view`.

    Why it breaks:
        The shape of the result depends on a value that does not exist while TorchDynamo traces.

    Example:
        y = x[:lengths.max()]

    Use instead:
        y = x * (torch.arange(x.shape[0]) < lengths.max())

    Mends:
        none: say the size as a Python int, or compile with capture_scalar_outputs

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM403"
    name = "tensor-size"
    message = "a size that is a Tensor is read as a Python number: the graph breaks here"
    advice = "Pass the size as a Python int, or keep the full shape and a mask."
    events = (Call, Subscript)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x, n):
    k = x.shape[0] // 2
    return x[:k] + torch.zeros(k) + torch.arange(k)

def example_inputs():
    return [(torch.ones(4), torch.tensor(3))]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x, n):
    return x[:n] + 1

def example_inputs():
    return [(torch.ones(5), torch.tensor(3))]
""",
        """
import torch

@torch.compile
def f(x):
    y = x * 2
    return torch.arange(y.max()) + 1

def example_inputs():
    return [(torch.tensor([1, 2]),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in _SIZES

    def judge(self, event: Event, context: Context) -> Break | None:
        if context.mode.scalars:
            return None
        if isinstance(event, Subscript):
            return _bounds(event)
        assert isinstance(event, Call)
        for value in (
            *event.arguments[_SIZES[event.callee] :],
            *(v for k, v in event.keywords.items() if k in ("size", "end", "pad")),
        ):
            why = _computed(value)
            if why is not None:
                return Break("GB0033", *why)
        return None


def _computed(value: Value) -> tuple[Origin | None, bool] | None:
    """The evidence for a tensor made inside the graph, in a value or a list of sizes."""
    if isinstance(value, Container):
        parts = value.items or ((value.of,) if value.of is not None else ())
        return next((why for why in map(_computed, parts) if why is not None), None)
    tensor = tensor_in(value)
    if tensor is None or tensor.graph_input or tensor.constant or tensor.rank not in (0, None):
        return None
    return evidence(value)


def _bounds(event: Subscript) -> Break | None:
    parts = event.index.items if isinstance(event.index, Container) and event.index.kind == "tuple" else (event.index,)
    for part in parts or ():
        if isinstance(part, Container) and part.kind == "slice":
            tensor = next((t for t in map(tensor_in, part.items or ()) if t is not None), None)
            if tensor is not None:
                return Break("GB0124", tensor.origin, tensor.likely, default_only=True)
    return None
