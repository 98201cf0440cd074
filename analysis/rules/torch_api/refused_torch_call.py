"""GM604: a part of torch that Dynamo does not put into a graph."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event, Load, SetAttribute
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import Container, SparseTensor, Tensor, Value, options, tensor_in
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence, may_refuse, refusal
from graphmend.analysis.torch_facts import TorchFacts

_DATA_DEPENDENT = {
    "torch.equal": "GB0033", "torch.allclose": "GB0033", "torch.Tensor.equal": "GB0033",
    "torch.Tensor.allclose": "GB0033", "torch._check_tensor_all": "GB0124", "torch.is_nonzero": "GB0208",
    "torch.Tensor.is_nonzero": "GB0208",
}  # fmt: skip
#: a handle that the same graph made is traced
_REMOVE = "torch.utils.hooks.RemovableHandle.remove"
#: of a context that the compiled function was given
_MARK_DIRTY = "torch.autograd.function.FunctionCtx.mark_dirty"
#: of any optimizer (torch 2.13)
_OPTIMIZER = {"zero_grad": "GB0008", "step": "GB0025"}
#: judged by rules of their own
_ELSEWHERE = frozenset(
    {
        "torch.compiler.disable.<locals>.call",
        "torch.Tensor.requires_grad_",
        "torch._dynamo.graph_break",
        "torch._dynamo.skip_frame",
        "torch._dynamo.comptime.comptime.graph_break",
    }
)


class RefusedTorchCall(Rule):
    """
    What it does:
        Finds calls of torch that TorchDynamo refuses: comparisons that answer with a Python bool (`torch.equal`),
        random generators and their state, sparse and nested tensors, `.data = ...`, storage access, optimizers, ...

    Why it breaks:
        They have no operation that could stand in a graph, or change state outside of it (torch 2.13).

    Example:
        if torch.equal(a, b): ...

    Use instead:
        (a == b).all()

    Mends:
        `(a == b).all()` for comparisons; `copy_` for `.data = ...`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM604"
    name = "refused-torch-call"
    message = "TorchDynamo does not put {call} into a graph: the graph breaks here"
    advice = "Use an operation on Tensors instead, or call it outside of the compiled function."
    events = (Call, Load, SetAttribute)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = x @ y
    return z.float() + torch.rand(4) + x.is_contiguous()

def example_inputs():
    return [(torch.ones(4, 4), torch.ones(4, 4))]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x, y):
    z = x + 1
    return z * 2, torch.allclose(z, y)

def example_inputs():
    return [(torch.ones(4), torch.ones(4))]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        if callee in _DATA_DEPENDENT or callee in (_MARK_DIRTY, "torch.as_tensor", "numpy.ndarray.astype"):
            return True
        if callee.startswith("torch.optim."):
            return callee.rpartition(".")[2] in _OPTIMIZER or may_refuse(callee, torch)
        dynamic = any("d" in o.flags for o in torch.overloads(callee))
        return callee.startswith("torch.") and not dynamic and callee not in _ELSEWHERE and may_refuse(callee, torch)

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, SetAttribute):
            if not isinstance(event.owner, Tensor):
                return None
            if event.name in ("real", "imag"):
                call = f".{event.name} = ..."
                return Break("GB0058", event.owner.origin, event.owner.likely, fill={"call": call})
            if event.name != "data":
                return None
            return _data(event.owner, event.value)
        if isinstance(event, Load):
            sparse = next((o for o in options(event.value) if isinstance(o, SparseTensor)), None)
            if sparse is None:
                return None
            fill = {"call": "a sparse Tensor"}
            return Break("GB0015", sparse.origin, sparse is not event.value, fill=fill, effect="skips-frame")
        assert isinstance(event, Call)
        callee = event.callee
        call = "." + callee.rpartition(".")[2] + "()" if callee.startswith("torch.Tensor.") else callee + "()"
        operands = ((event.receiver,) if event.receiver is not None else ()) + event.arguments
        why = next((e for e in map(evidence, operands) if e is not None), None)
        if callee == _MARK_DIRTY:
            foreign = isinstance(event.receiver, ExternalInstance) and not event.receiver.made_inside
            return Break("GB2019", fill={"call": call}) if foreign else None
        if callee in _DATA_DEPENDENT:
            takes_tensors = why is None and not callee.startswith("torch.Tensor.")  # whatever else is known of them
            why = (None, False) if takes_tensors else why
            return Break(_DATA_DEPENDENT[callee], *why, fill={"call": call}) if why is not None else None
        if callee == "torch.as_tensor":
            given = event.arguments[0] if event.arguments else None
            of_tensors = isinstance(given, Container) and tensor_in(given.element) is not None
            return Break("GB4315", fill={"call": "torch.as_tensor() of Tensors"}) if of_tensors else None
        if isinstance(event.receiver, ExternalInstance) and event.receiver.made_inside and callee == _REMOVE:
            return None
        if callee == "torch.nested.nested_tensor" and _is_jagged(event.keywords.get("layout")):
            return None
        if callee == "numpy.ndarray.astype":
            to_object = any(isinstance(a, ExternalName) and a.name == "builtins.object" for a in event.arguments)
            return Break("GB0185", fill={"call": ".astype(object)"}) if to_object else None
        gb_id = refusal(event, context)
        if gb_id is None and callee.startswith("torch.optim."):
            gb_id = _OPTIMIZER.get(callee.rpartition(".")[2])
        return (
            Break(
                gb_id,
                *(why or (None, False)),
                fill={"call": call},
                default_only=context.torch.default_only(event.callee),
            )
            if gb_id is not None
            else None
        )


def _data(owner: Tensor, value: Value) -> Break | None:
    """`owner.data = value`: traced where the tensor is an input, and keeps its dtype as far as known."""
    fill = {"call": ".data = ..."}
    if not owner.graph_input:
        return Break("GB0056", owner.origin, owner.likely, fill=fill)
    dtype = value.dtype if isinstance(value, Tensor) else None
    if not isinstance(dtype, str) or dtype in ("float", "int", "bool", "complex") or dtype == owner.dtype:
        return None
    return Break("GB0220", owner.origin, True, fill=fill)


def _is_jagged(layout: Value | None) -> bool:
    return isinstance(layout, ExternalName) and layout.name == "torch.jagged"
