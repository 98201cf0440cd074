"""GM608: an autograd function has a feature that Dynamo does not trace."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.definitions import ClassInfo
from graphmend.analysis.program.entities import Class
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.syntax.traversal import walk
from graphmend.analysis.torch_facts import TorchFacts

_APPLY = "torch.autograd.Function.apply"
_METHOD = "torch.autograd.Function.method"


class AutogradFunction(Rule):
    """
    What it does:
        Finds uses of `torch.autograd.Function` that TorchDynamo does not trace: functions with `jvp` or `vjp`, a
        `forward` that is no function, the same tensor given twice, a context that is kept, ...

    Why it breaks:
        TorchDynamo traces `forward` and `backward` into a graph of their own, with a context that lives as long as the
        call (torch 2.13).

    Example:
        Multiply.apply(x, x)

    Use instead:
        Square.apply(x)

    Mends:
        none: write the function with `forward` and `backward` alone

    References:
        https://docs.pytorch.org/docs/2.13/notes/extending.html
    """

    code = "GM608"
    name = "autograd-function"
    message = "an autograd function {does}: the graph breaks here"
    advice = "Write the function with `forward` and `backward` alone."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

@torch.compile
def f(x):
    return Double.apply(x * 3)

def example_inputs():
    return [(torch.ones(4, requires_grad=True),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        return t * 2

@torch.compile
def f(x):
    y = x * 3
    return Double.apply(y)

def example_inputs():
    return [(torch.ones(4, requires_grad=True),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        return callee in (_APPLY, _METHOD)

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        if event.callee == _METHOD:
            return Break("GB0140", fill={"does": "has a method that is not static, and is called on its class"})
        assert isinstance(event.receiver, Class)
        found = next(_always(event, event.receiver.info), None)
        if found is not None:
            return Break(found[0], fill={"does": found[1]})
        if event.situation.gradients_off:
            return None
        found = next(_with_gradients(event, event.receiver.info), None)
        return None if found is None else Break(found[0], likely=True, fill={"does": found[1]})


def _always(event: Call, info: ClassInfo) -> Iterator[tuple[str, str]]:
    """What breaks whether gradients are wanted or not."""
    forward = info.methods.get("forward")
    if _is_object(info, "forward"):
        yield "GB0346", "has an object as its `forward`"
    if forward is None:
        return
    if event.keywords.keys() & {a.arg for a in forward.node.args.kwonlyargs}:
        yield "GB4372", "takes an argument by its name only"
    context = forward.parameters[0].arg if forward.parameters else ""
    for node in walk(forward.node):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == context:
            target = node.targets[0]
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id != context:
                yield "GB0019", "keeps its context"


def _with_gradients(event: Call, info: ClassInfo) -> Iterator[tuple[str, str]]:
    """What breaks where one of the arguments wants a gradient."""
    if _is_object(info, "backward"):
        yield "GB0346", "has an object as its `backward`"
    for name, gb_id in (("vjp", "GB0145"), ("jvp", "GB0144")):
        if name in info.methods:
            yield gb_id, f"has a `{name}` of its own"
    tensors = [a for a in event.arguments if isinstance(a, Tensor)]
    if len({id(t) for t in tensors}) < len(tensors):
        yield "GB6297", "is given the same tensor twice"
    forward = info.methods.get("forward")
    if forward is None:
        return
    nodes = list(walk(forward.node))
    if any(isinstance(n, ast.Attribute) and n.attr == "_materialize_non_diff_grads" for n in nodes):
        yield "GB0347", "switches how missing gradients are filled in"
    returned = {m.id for n in nodes if isinstance(n, ast.Return) and n.value for m in _names(n.value)}
    for n in nodes:
        if not (isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "mark_dirty"):
            continue
        if any(isinstance(a, ast.Name) and a.id not in returned for a in n.args):
            yield "GB2464", "writes to a tensor that it does not return"


def _names(node: ast.expr) -> list[ast.Name]:
    """The names that are returned as they are."""
    parts = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    return [part for part in parts if isinstance(part, ast.Name)]


def _is_object(info: ClassInfo, name: str) -> bool:
    """Whether a class has an object that a call made where a method should be."""
    made = info.names.get(name)
    if not isinstance(made, ast.Call):
        return False
    return not (isinstance(made.func, ast.Name) and made.func.id in ("staticmethod", "classmethod"))
