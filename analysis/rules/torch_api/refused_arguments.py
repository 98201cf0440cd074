"""GM606: a function of torch is called with an argument that Dynamo does not put into a graph."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import ClassVar

from graphmend.analysis.interpreter.events import Call, Event
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName, Intrinsic
from graphmend.analysis.lattice.values import Container, Tensor
from graphmend.analysis.program.entities import Instance
from graphmend.analysis.rules.arguments import is_plain, refused_argument
from graphmend.analysis.rules.rule import Break, Context, Rule
from graphmend.analysis.syntax.traversal import walk
from graphmend.analysis.torch_facts import TorchFacts
from graphmend.analysis.torch_facts.arguments import DEMANDS


class RefusedArguments(Rule):
    """
    What it does:
        Finds calls of torch that TorchDynamo traces, but not with these arguments: operands of `torch.cond` and its
        kind that are no tensors, options by position, devices that do not exist, ...

    Why it breaks:
        TorchDynamo models each of these functions by hand, for the arguments that it documents (torch 2.13).

    Example:
        torch.cond(p, f, g, {"x": x})

    Use instead:
        torch.cond(p, f, g, (x,))

    Mends:
        none: pass what the function takes while it is traced

    References:
        https://docs.pytorch.org/docs/2.13/compile/programming_model.graph_breaks_index.html
    """

    code = "GM606"
    name = "refused-arguments"
    message = "TorchDynamo does not trace {call} with this argument, it {reason}: the graph breaks here"
    advice = "Pass what the function takes while it is traced."
    events = (Call,)
    valid: ClassVar = (
        """
import torch

@torch.compile
def f(x):
    y = x + 1
    return torch.cond(y.sum() > 0, torch.sin, torch.cos, (y,))

def example_inputs():
    return [(torch.ones(4),)]
""",
    )
    invalid: ClassVar = (
        """
import torch

@torch.compile
def f(x: torch.Tensor):
    y = x + 1
    y.set_(torch.ones(8).untyped_storage(), 0, (4,), (1,))
    return y * 2

def example_inputs():
    return [(torch.ones(4),)]
""",
    )

    def concerns(self, callee: str, torch: TorchFacts) -> bool:
        if callee in ("torch.operation", *_OPAQUE_CALLS):
            return True
        return callee in DEMANDS and callee.startswith(("torch.", "numpy."))

    def judge(self, event: Event, context: Context) -> Break | None:
        assert isinstance(event, Call)
        if event.callee == "torch.operation":
            return _object(event, context) or _generator(event)
        if event.callee in _OPAQUE_CALLS:
            return _OPAQUE_CALLS[event.callee](event)
        demand = refused_argument(event)
        if demand is None:
            return None
        call = event.callee.removeprefix("builtins.") + "()"
        return Break(demand.gb_id, fill={"call": call, "reason": demand.reason})


def _object(event: Call, context: Context) -> Break | None:
    """An operation on tensors that is given an object of the program's own."""
    assert isinstance(event.receiver, ExternalName)
    name = event.receiver.name
    returns = context.torch.returns(name)
    if name.startswith(("torch.nn.", "torch.utils.")) or returns is None or not returns.is_tensor:
        return None
    for value in event.arguments:
        if not isinstance(value, Instance) or value.info.node.bases or value.info.node.decorator_list:
            continue
        override = value.info.methods.get("__torch_function__")
        fill = {"call": f"{name}()", "reason": "takes tensors and numbers"}
        if override is None and is_plain(value):
            return Break("GB0055", fill=fill)
        if override is not None and _declines(override.node):
            return Break("GB0000", fill=fill)
    return None


def _generator(event: Call) -> Break | None:
    """Numbers that are drawn by a generator of the program's own."""
    assert isinstance(event.receiver, ExternalName)
    given = event.keywords.get("generator")
    if not isinstance(given, ExternalInstance) or given.cls != "torch.Generator":
        return None
    return Break("GB0055", fill={"call": f"{event.receiver.name}()", "reason": "takes torch's own generators alone"})


def _declines(node: ast.AST) -> bool:
    """Whether all that a function returns is `NotImplemented`."""
    returned = [n.value for n in walk(node) if isinstance(n, ast.Return)]
    return bool(returned) and all(isinstance(v, ast.Name) and v.id == "NotImplemented" for v in returned)


def _handed_on(event: Call) -> Break | None:
    """A function that is traced with less care gets tensors, constants, and what pytree knows of."""
    for value in event.arguments:
        if not isinstance(value, Instance) or value.info.node.bases or value.info.node.decorator_list:
            continue
        text, name = value.info.module.source.text, value.info.name
        fill = {"call": "a function under nonstrict_trace", "reason": "takes tensors and what pytree knows of"}
        if "register_" not in text:
            return Break("GB0236", fill=fill)
        if f"register_constant({name})" in text and value.made_inside:
            return Break("GB0238", fill=fill)
    return None


def _given_back(event: Call) -> Break | None:
    """The result of such a function goes into the graph: an object of the program's own does not."""
    value = event.receiver
    if not isinstance(value, Instance) or not is_plain(value) or "register_" in value.info.module.source.text:
        return None
    return Break("GB0251", fill={"call": "a function under nonstrict_trace", "reason": "returns tensors and constants"})


def _of_leaf(event: Call) -> Break | None:
    """A leaf function gets modules that the program holds somewhere, where they are found again."""
    for value in event.arguments:
        if isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn.") and value.made_inside:
            reason = "takes modules that were made outside of the compiled function"
            return Break("GB6210", fill={"call": "a function under leaf_function", "reason": reason})
    return None


def _as_constant(event: Call) -> Break | None:
    """What a function under `assume_constant_result` gets must be known while tracing, or be a tensor by itself."""
    for value in event.arguments:
        parts = value.items or (value.element,) if isinstance(value, Container) and value.kind in _HOLDS else ()
        is_iterator = isinstance(value, Container) and value.kind == "generator"
        if is_iterator or any(isinstance(part, Tensor) and not part.likely for part in parts):
            fill = {"call": "a function under assume_constant_result", "reason": "takes constants and single tensors"}
            return Break("GB2520", fill=fill)
    return None


def _in_region(event: Call) -> Break | None:
    """What is called in a region of its own is a function or module that is written in Python."""
    function = event.receiver
    is_object = isinstance(function, Instance) and not function.info.node.bases
    if not is_object and not isinstance(function, (ExternalName, Intrinsic)):
        return None
    fill = {"call": "nested_compile_region", "reason": "takes a function or a module that is written in Python"}
    return Break("GB0042", fill=fill, effect="raises")


_HOLDS = frozenset({"list", "tuple", "set"})
#: calls of functions that Dynamo does not look into, by what makes them so
_OPAQUE_CALLS: dict[str, Callable[[Call], Break | None]] = {
    "torch._dynamo.nonstrict_trace.call": _handed_on,
    "torch._dynamo.nonstrict_trace.result": _given_back,
    "torch._dynamo.decorators.leaf_function.call": _of_leaf,
    "torch._dynamo.assume_constant_result.call": _as_constant,
    "torch.compiler.nested_compile_region.<locals>.call": _in_region,
}
