"""GM401: an operation whose result's shape depends on values."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.values import Const, Container, Scalar, Static, Tensor, Value, tensor_in
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence
from graphmend.analysis.torch_facts import TorchFacts

#: torch's own Python on top of operations with a dynamic shape, which no operator tag shows (torch 2.13)
_COMPOSED = frozenset({
    "torch.unique", "torch.unique_consecutive", "torch.Tensor.unique", "torch.Tensor.unique_consecutive",
    "torch.argwhere", "torch.Tensor.argwhere", "torch.combinations", "torch.linalg.lstsq",
    "torch.nn.functional.ctc_loss", "torch.ctc_loss", "torch.nn.CTCLoss.forward", "torch.bincount",
    "torch.Tensor.bincount", "numpy.nonzero", "numpy.argwhere", "numpy.flatnonzero", "numpy.unique",
    "numpy.ndarray.nonzero",
})  # fmt: skip
_ONE_ARGUMENT = frozenset({"torch.where", "torch.Tensor.where", "numpy.where"})
_NEEDS_CLASSES = "torch.nn.functional.one_hot"
_REPEATS = frozenset({"torch.repeat_interleave", "torch.Tensor.repeat_interleave"})
#: break under `fullgraph=True` too (torch 2.13)
_CTC = frozenset({"torch.nn.functional.ctc_loss", "torch.ctc_loss", "torch.nn.CTCLoss.forward"})
_ALWAYS = frozenset({*_CTC, "torch.linalg.lstsq", "torch.combinations", _NEEDS_CLASSES})


class DynamicShape(Rule):
    """
    What it does:
        Finds calls whose result has a shape that depends on values: `nonzero`, `where(c)`, `masked_select`, `unique`,
        `repeat_interleave` by a tensor, `one_hot` without a number of classes, `bincount`, ...

    Why it breaks:
        The shape does not exist while TorchDynamo traces. Most of these stay in the graph where
        `capture_dynamic_output_shape_ops` is on, as it is with `fullgraph=True` (torch 2.13).

    Example:
        count = (x > 0).nonzero().shape[0]

    Use instead:
        count = (x > 0).sum()

    Mends:
        masked reductions, `output_size=`, `num_classes=`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM401"
    name = "dynamic-shape"
    message = "the shape of what {call} returns depends on values: the graph breaks here"
    advice = "Use a form with a fixed shape (mask, nonzero_static, output_size=), or capture_dynamic_output_shape_ops."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x, r):
    return torch.where(x > 0, x, 0).sum() + torch.repeat_interleave(x, r, output_size=3).sum()

def example_inputs():
    return [(torch.ones(2), torch.tensor([2, 1]))]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    return torch.nonzero(x > 0) + 1

def example_inputs():
    return [(torch.ones(4),)]
""",
        """
import torch

@torch.compile
def f(x):
    (rows,) = torch.where(x > 0)
    return rows + torch.unique(x).sum()

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        if callee in _COMPOSED or callee in _ONE_ARGUMENT or callee in _REPEATS or callee == _NEEDS_CLASSES:
            return True
        return callee.startswith("torch.") and any("d" in o.flags for o in torch.overloads(callee))

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        values = (
            ((event.receiver,) if event.receiver is not None else ()) + event.arguments + tuple(event.keywords.values())
        )
        if event.callee in _REPEATS and (repeats := _repeats(event)) is not None:
            values = (repeats,)
        why = next((e for e in map(evidence, map(_looked_into, values)) if e is not None), None)
        if not _dynamic(event, context.torch):
            return None
        if why is None:
            if not event.callee.startswith("torch."):
                return None
            why = (None, False)  # an operation of torch takes tensors, whatever else is known of its arguments
        if context.mode.shapes and event.callee not in _ALWAYS:
            return None
        return Break("GB0036", *why, default_only=event.callee not in _ALWAYS, fill={"call": _short(event.callee)})


def _looked_into(value: Value) -> Value:
    return value.element if isinstance(value, Container) and value.items else value


def _short(callee: str) -> str:
    owner, _, last = callee.removesuffix(".forward").rpartition(".")
    return f".{last}()" if owner in ("torch.Tensor", "numpy.ndarray") else f"{owner}.{last}()"


def _dynamic(event: Call, torch: TorchFacts) -> bool:
    callee = event.callee
    operands = ((event.receiver,) if event.receiver is not None else ()) + event.arguments
    if callee in _ONE_ARGUMENT:
        return len(operands) == 1 and not event.keywords.keys() & {"x", "y", "input", "other"}
    if callee == _NEEDS_CLASSES:
        classes = event.argument(1, "num_classes")
        return classes is None or (isinstance(classes, Const) and classes.value == -1)
    if callee in _REPEATS:
        return _repeats_by_tensor(event)
    if callee in _COMPOSED:
        return True
    tensors: dict[int | str, bool] = {i: True for i, a in enumerate(event.arguments) if tensor_in(a) is not None}
    tensors.update({i: False for i, a in enumerate(event.arguments) if isinstance(a, (Static, Scalar))})
    return torch.is_dynamic_shape(callee, len(event.arguments), frozenset(event.keywords), tensors)


def _repeats(event: Call) -> Value | None:
    """How often each element is repeated."""
    operands = ((event.receiver,) if event.receiver is not None else ()) + event.arguments
    return operands[1] if len(operands) > 1 else event.keywords.get("repeats")


def _repeats_by_tensor(event: Call) -> bool:
    size = event.keywords.get("output_size")
    if size is not None and not (isinstance(size, Const) and size.value is None):
        return False
    repeats = _repeats(event)
    return isinstance(repeats, Tensor) or (repeats is None and not event.keywords)
