"""Context managers of `with` statements: the value that `as` binds, whether Dynamo can resume inside after a break, and
whether gradients are off."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import With
from graphmend.analysis.interpreter.operations import special_methods
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import UNKNOWN, Container, Static, Tensor, Value
from graphmend.analysis.program.entities import Instance

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


#: context managers in whose body Dynamo can break and resume (torch 2.13); in any other, a break gives the frame up
RESUMABLE = frozenset({
    "torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled", "torch.inference_mode", "torch.autocast",
    "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast", "torch.autograd.grad_mode.no_grad",
    "contextlib.nullcontext", "torch.profiler.record_function", "torch.autograd.profiler.record_function",
    "torch.profiler.profile", "torch.cuda.stream", "torch.autograd.no_grad", "torch.autograd.enable_grad",
})  # fmt: skip


GRADIENTS_OFF = frozenset(
    {"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.grad_mode.no_grad"}
)
#: contexts that switch gradients on, or off where their argument says so
_GRADIENTS_SET = frozenset({
    "torch.enable_grad", "torch.autograd.enable_grad", "torch.autograd.grad_mode.enable_grad",
    "torch.set_grad_enabled", "torch.autograd.set_grad_enabled", "torch.autograd.grad_mode.set_grad_enabled",
})  # fmt: skip


def enter_context(w: Walk, node: ast.expr) -> tuple[Value, bool, bool | None]:
    """(what `as` binds, whether Dynamo can break inside and resume, whether gradients are off inside for certain; None
    where the context has no say in that)."""
    value = w.eval(node)
    name = value.cls if isinstance(value, ExternalInstance) else value.name if isinstance(value, ExternalName) else None
    if isinstance(value, Static) and value.type == "device":
        name = "torch.device"
    w.emit(With, node, name, value)
    bound: Value = UNKNOWN
    if isinstance(value, Container) and value.kind == "generator":
        bound = value.element
    elif isinstance(value, Instance):
        entered = special_methods.call_special_method(w, value, ("__enter__",), (), node)
        bound = value if entered is None else entered
    elif isinstance(value, (ExternalInstance, Tensor)):
        bound = value
    return bound, name in RESUMABLE, _gradients_off(name, node)


def _gradients_off(name: str | None, node: ast.expr) -> bool | None:
    arguments = [*node.args, *(k.value for k in node.keywords)] if isinstance(node, ast.Call) else []
    given = arguments[0].value if arguments and isinstance(arguments[0], ast.Constant) else None
    if name is not None and name.endswith("inference_mode"):
        return not arguments or given is True
    if name in GRADIENTS_OFF:
        return True
    if name in _GRADIENTS_SET:
        return given is False
    # what nothing is known of may switch them on
    known = name is not None and (name in RESUMABLE or not name.startswith("torch.") or name == "torch.device")
    return None if known else False
