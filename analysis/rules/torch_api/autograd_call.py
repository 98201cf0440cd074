"""GM601: gradients are asked for, or switched, while tracing."""

from __future__ import annotations

from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event, Operation, SetAttribute
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import FALSE, Const, Container, MarkedTensor, Tensor, tensor_in
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.rules.rule import Break, Context, Rule, evidence
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.options import traced_with

_CALLS = {
    "torch.Tensor.backward": "GB0123", "torch.autograd.grad": "GB9186", "torch.autograd.backward": "GB0007",
    "torch.Tensor.retain_grad": "GB0108", "torch.Tensor.requires_grad_": "GB0125",
    "torch.nn.Module.requires_grad_": "GB0125",
}  # fmt: skip
_FACTORIES = frozenset(
    "torch.zeros torch.ones torch.empty torch.rand torch.randn torch.full torch.tensor torch.arange torch.eye "
    "torch.linspace torch.zeros_like torch.ones_like torch.rand_like torch.randn_like torch.empty_like "
    "torch.full_like".split()
)


class AutogradCall(Rule):
    """
    What it does:
        Finds `backward()`, `torch.autograd.grad`, `requires_grad_()`, `.requires_grad = ...`, `retain_grad()` and
        factories with `requires_grad=True` in traced code.

    Why it breaks:
        TorchDynamo traces the forward pass; AOTAutograd derives the backward from it. Changes of autograd's state
        inside the graph have no place there (torch 2.13).

    Example:
        loss.backward()

    Use instead:
        loss = step(x); loss.backward() outside of the compiled function

    Mends:
        none, mostly: `torch._dynamo.config.trace_autograd_ops` for `torch.autograd.grad`

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM601"
    name = "autograd-call"
    message = "{call} changes or asks for gradients: the graph breaks here"
    advice = "Do it outside of the compiled function."
    events = (Call, SetAttribute, Operation)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    y = x * 2
    y.register_hook(lambda g: g * 2)
    with torch.no_grad():
        z = y.detach() + 1
    return y.sum() + z.sum()

def example_inputs():
    return [(torch.ones(4, requires_grad=True),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    loss = (x * x).sum()
    loss.backward()
    return loss.detach()

def example_inputs():
    return [(torch.ones(4, requires_grad=True),)]
""",
        """
import torch

@torch.compile
def f(x):
    y = x + 1
    y.requires_grad = True
    return (y * 2).detach()

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        if callee in _CALLS or callee in _FACTORIES:
            return True
        return callee.startswith("torch.nn.") and callee.endswith(".requires_grad_")

    def judge(self, event: Event, context: Context) -> Break | None:
        if isinstance(event, Operation):
            consumed = event.name == "returned consumed" and traced_with(context.mode.options, "torch.autograd.grad")
            return Break("GB4927", fill={"call": "torch.autograd.grad of what is returned"}) if consumed else None
        if isinstance(event, SetAttribute):
            if event.name != "requires_grad" or not isinstance(event.owner, Tensor):
                return None
            return Break("GB0206", event.owner.origin, event.owner.likely, fill={"call": ".requires_grad = ..."})
        assert isinstance(event, Call)
        callee = event.callee
        if traced_with(context.mode.options, callee):
            gb_id = _refused_inputs(event)
            return None if gb_id is None else Break(gb_id, fill={"call": callee.removeprefix("torch.Tensor")})
        if callee in _FACTORIES:
            asked = event.keywords.get("requires_grad")
            on = isinstance(asked, Const) and asked.value is True
            return Break("GB0225", fill={"call": f"{callee}(requires_grad=True)"}) if on else None
        short = "." + callee.rpartition(".")[2] + "()"
        if callee == "torch.Tensor.requires_grad_":
            return _requires_grad(event, short)
        receiver = event.receiver if event.receiver is not None else event.arguments[0] if event.arguments else None
        why = evidence(receiver) if receiver is not None and tensor_in(receiver) is not None else None
        name = callee if callee.startswith("torch.autograd.") else short
        return Break(_CALLS.get(callee, "GB0125"), *(why or (None, False)), fill={"call": name})


def _requires_grad(event: Call, short: str) -> Break | None:
    """On an input it breaks; on what the graph computes only if the result leaves it, which is likely."""
    tensor = tensor_in(event.receiver) if event.receiver is not None else None
    asked = event.argument(0, "requires_grad")
    if tensor is None or (isinstance(asked, Const) and not asked.value):
        return None
    if tensor.graph_input:
        return Break("GB0125", tensor.origin, tensor.likely, fill={"call": short})
    if event.answer is FALSE:
        return None
    return Break("GB8985", tensor.origin, True, fill={"call": short})


def _refused_inputs(event: Call) -> str | None:
    """What breaks of `backward` and `autograd.grad` although they are traced: inputs that are no leaves."""
    if event.callee == "torch.Tensor.backward":
        inputs = event.keywords.get("inputs")
        parts = inputs.items if isinstance(inputs, Container) else None
        if parts == ():
            return "GB0442"
        return "GB7054" if any(isinstance(p, Tensor) and not p.graph_input for p in parts or ()) else None
    outputs = event.argument(0, "outputs")
    given = outputs.items or () if isinstance(outputs, Container) else (outputs,)
    if any(isinstance(one, MarkedTensor) and one.mark("consumed") is not None for one in given):
        return "GB1381"
    wanted = event.argument(1, "inputs")
    if isinstance(wanted, Instance):
        return "GB6663"
    if isinstance(wanted, Container) and wanted.kind == "dict" and not wanted.fields and wanted.of is not None:
        return "GB1724"
    is_edge = isinstance(wanted, ExternalInstance) and wanted.cls == "torch.autograd.graph.GradientEdge"
    return "GB5748" if is_edge else None
