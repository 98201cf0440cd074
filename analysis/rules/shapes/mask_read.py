"""GM402: elements are read by a boolean mask."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Subscript
from graphmend.analysis.lattice.values import UNKNOWN, Container, Value, dtype_kind, tensor_in
from graphmend.analysis.rules.rule import Break, Context, Rule


class MaskRead(Rule):
    """
    What it does:
        Finds `x[mask]` with a boolean tensor, where it is read. Writing `x[mask] = number` is fine (torch 2.13).

    Why it breaks:
        How many elements there are depends on values, so the result has no shape while TorchDynamo traces. It stays in
        the graph where `capture_dynamic_output_shape_ops` is on, as it is with `fullgraph=True` (torch 2.13).

    Example:
        total = x[x > 0].sum()

    Use instead:
        total = torch.where(x > 0, x, 0).sum()

    Mends:
        masked reductions and writes by `torch.where`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM402"
    name = "mask-read"
    message = "reading by a boolean mask gives a shape that depends on values: the graph breaks here"
    advice = "Keep the full shape and choose with torch.where, or compile with capture_dynamic_output_shape_ops."
    events = (Subscript,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    y = x.clone()
    y[x > 0] = 0.0
    return y + x[torch.arange(2)].sum()

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    y = x * 2
    return y[y > 0].sum()

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Subscript)
        read = tensor_in(event.value)
        if event.store or context.mode.shapes or (read is None and event.value is not UNKNOWN):
            return None
        for part in _parts(event.index):
            mask = tensor_in(part)
            if mask is not None and dtype_kind(mask.dtype) == "bool" and mask.rank != 0:
                return Break(
                    "GB0036",
                    mask.origin,
                    mask.likely or part is not mask or (read is not None and read.likely),
                    default_only=True,
                )
        return None


def _parts(index: Value) -> tuple[Value, ...]:
    if isinstance(index, Container) and index.kind == "tuple" and index.items is not None:
        return index.items
    return (index,)
