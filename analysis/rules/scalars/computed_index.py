"""GM303: an element chosen by a computed 0-d tensor, or a Python sequence indexed by a tensor."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Event, Subscript
from graphmend.analysis.lattice.values import INT, Container, Static, Tensor, Value, dtype_kind, is_known_input, options
from graphmend.analysis.rules.rule import Break, Context, Rule, break_at_draw, drawn, evidence


class ComputedIndex(Rule):
    """
    What it does:
        Finds `x[i]` where `i` is a 0-d integer tensor that the graph computes, or a number that `random.randint` draws,
        and Python lists, sizes and module lists indexed by a tensor or such a number.

    Why it breaks:
        TorchDynamo reads a 0-d index tensor as a Python number, which does not exist while it traces (torch 2.13). A
        0-d tensor that comes from outside the graph is fine, and so is an index tensor with dimensions.

    Example:
        best = x[x.argmax()]

    Use instead:
        best = x.take(x.argmax())

    Mends:
        take, gather or index_select

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM303"
    name = "computed-index"
    message = "an index that is a computed Tensor is read as a Python number: the graph breaks here"
    advice = "Use torch.take, gather or index_select, which take the index as a Tensor."
    events = (Subscript,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x, i):
    return x[i] + x[torch.arange(2)].sum() + x[x.argsort()].max()

def example_inputs():
    return [(torch.ones(4), torch.tensor(2))]
""",
    )
    invalid: ClassVar = (
        """
import random
import torch

@torch.compile
def f(x):
    return x[random.randint(0, 3)] + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x):
    return x[x.argmax()] + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Subscript)
        if isinstance(event.value, Tensor):
            for part in (one for index in _parts(event.index) for one in options(index)):
                if (
                    isinstance(part, Tensor)
                    and part.rank == 0
                    and not part.graph_input
                    and dtype_kind(part.dtype)
                    in ("int", None)  # what else may be an index is a mask, which breaks it too
                ):
                    return Break("GB0033", part.origin, part.likely)
                if drawn(part) and not context.mode.scalars:
                    return break_at_draw("GB0033", part, context.torch)
            return None
        sized = _is_size(event.value)
        indexed = isinstance(event.value, Container) and event.value.kind in ("list", "tuple", "modules")
        if indexed and drawn(event.index) and not context.mode.scalars:
            return break_at_draw("GB0124", event.index, context.torch)
        if (indexed or sized) and isinstance(event.index, Tensor) and not context.mode.scalars:
            if is_known_input(event.index):
                return None
            why = evidence(event.index)
            gb_id = context.torch.form("a size indexed by a tensor", "GB0124") if sized else "GB0124"
            return Break(gb_id, *why) if why is not None and gb_id is not None else None
        return None


def _is_size(value: Value) -> bool:
    """A tensor's shape; that of a tensor whose rank is known is a tuple of numbers that are not."""
    if isinstance(value, Container):
        return value.kind == "tuple" and bool(value.items) and all(item is INT for item in value.items or ())
    return isinstance(value, Static) and value.type == "size"


def _parts(index: Value) -> tuple[Value, ...]:
    if isinstance(index, Container) and index.kind == "tuple" and index.items is not None:
        return index.items
    return (index,)
