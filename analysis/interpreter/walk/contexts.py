"""Context managers of `with` statements: the value that `as` binds, whether Dynamo can resume inside after a break, and
whether gradients are off."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.interpreter.calls.gradient_mode import GRADIENT_MODES, switches_gradients_off
from graphmend.analysis.interpreter.events import With
from graphmend.analysis.interpreter.operations import special_methods
from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import NONE, UNKNOWN, Container, Static, Tensor, Value
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


#: context managers in whose body Dynamo can break and resume (torch 2.13); in any other, a break gives the frame up
RESUMABLE = GRADIENT_MODES | {
    "torch.autocast", "torch.amp.autocast", "torch.cuda.amp.autocast", "torch.cpu.amp.autocast",
    "contextlib.nullcontext", "torch.profiler.record_function", "torch.autograd.profiler.record_function",
    "torch.profiler.profile", "torch.cuda.stream",
}  # fmt: skip


def _made_by(w: Walk, node: ast.expr) -> str | None:
    """The name of the function that makes a context; where that is the program's own, of the decorator by which it
    does, with what it lacks."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return w.module.qualified(node.func)
    callee = w.eval(node.func) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
    if isinstance(callee, ExternalName):
        return callee.name
    if not isinstance(callee, Function) or not callee.info.decorated_with("contextlib.contextmanager"):
        return None
    yields = any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in walk(callee.info.node))
    return "contextlib.contextmanager" if yields else "contextlib.contextmanager without yield"


class Entered(NamedTuple):
    """A context that a `with` statement has entered."""

    node: ast.expr
    context: Value
    bound: Value
    """What `as` binds."""
    resumable: bool
    """Whether Dynamo can break inside and resume."""
    gradients_off: bool | None
    """Whether gradients are off inside for certain; None where the context has no say in that."""


def enter_context(w: Walk, node: ast.expr) -> Entered:
    """Enters a context that an expression gives."""
    value = w.eval(node)
    name = value.cls if isinstance(value, ExternalInstance) else value.name if isinstance(value, ExternalName) else None
    if isinstance(value, Static) and value.type == "device":
        name = "torch.device"
    w.emit(With, node, name or _made_by(w, node), value)
    bound: Value = UNKNOWN
    if isinstance(value, Container) and value.kind == "generator":
        bound = value.element
    elif isinstance(value, Instance):
        entered = special_methods.call_special_method(w, value, ("__enter__",), (), node)
        bound = value if entered is None else entered
    elif isinstance(value, (ExternalInstance, Tensor)):
        bound = value
    return Entered(node, value, bound, name in RESUMABLE, _gradients_off(name, node))


def leave_contexts(w: Walk, entered: Sequence[Entered]) -> None:
    """Leaves contexts without an exception: TorchDynamo traces `__exit__` of the program's own (2.13)."""
    for one in reversed(entered):
        if isinstance(one.context, Instance):
            special_methods.call_special_method(w, one.context, ("__exit__",), (NONE, NONE, NONE), one.node)


def _gradients_off(name: str | None, node: ast.expr) -> bool | None:
    if name in GRADIENT_MODES:
        return switches_gradients_off(name, node)
    # what nothing is known of may switch them on
    known = name is not None and (name in RESUMABLE or not name.startswith("torch.") or name == "torch.device")
    return None if known else False
