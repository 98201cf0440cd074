"""Subclasses of `torch.autograd.Function`: their `apply`, and methods that are called on the class."""

from __future__ import annotations

import ast
from functools import partial
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Call
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.evidence import Evidence
from graphmend.analysis.lattice.external import ExternalInstance, Intrinsic
from graphmend.analysis.lattice.values import BOOL, UNKNOWN, Container, Tensor, Value
from graphmend.analysis.program.definitions import FunctionInfo
from graphmend.analysis.program.entities import Class, Function
from graphmend.analysis.resolution.classes import AUTOGRAD_CONTEXT, find_method, outside_bases

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


def apply_of(cls: Class) -> Intrinsic:
    """`cls.apply`: the rules see the class, and `forward` is entered."""
    return Intrinsic("torch.autograd.Function.apply", partial(_applied, cls))


def _applied(cls: Class, w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    if isinstance(node, ast.expr):
        w.emit(Call, node, "torch.autograd.Function.apply", cls, args, keywords)
    forward = find_method(w.session, cls.info, "forward")
    if forward is None:
        return UNKNOWN
    with_context = find_method(w.session, cls.info, "setup_context") is None
    context = ExternalInstance(AUTOGRAD_CONTEXT, made_inside=True)
    value = w.apply(Function(forward, bound=context if with_context else None), args, keywords, node)
    _differentiate(w, cls, context, node)
    return value


def _differentiate(w: Walk, cls: Class, context: ExternalInstance, node: ast.AST) -> None:
    """Enter `backward`, which Dynamo traces beside `forward` where an input requires gradients."""
    backward = find_method(w.session, cls.info, "backward")
    if backward is None or w.silent or w.situation.gradients_off or not w.session.stack.traced:
        return
    gradient = Tensor(Evidence("is a gradient, so a Tensor", "grad"), graph_input=True)
    with w.restoring():
        w.situation.conditional += 1
        w.apply(Function(backward, bound=context), (gradient,), {}, node)


def context_member(name: str, node: ast.AST) -> Value | None:
    """An attribute of the context that `forward` and `backward` share; None for any other than torch's own."""
    if name in ("saved_tensors", "saved_variables"):
        return Container("tuple", of=Tensor(Evidence("was saved for the backward pass", node), graph_input=True))
    return Container("tuple", of=BOOL) if name == "needs_input_grad" else None


def is_plain_method(w: Walk, cls: Class, method: FunctionInfo) -> bool:
    """Whether a method of an autograd function is neither static nor bound to its class."""
    if method.is_static or method.is_classmethod or method.is_property:
        return False
    return any(base.startswith("torch.autograd.") for base in outside_bases(w.session, cls.info))


def method_of(cls: Class, method: FunctionInfo) -> Intrinsic:
    """A method that is called on the class."""
    return Intrinsic("torch.autograd.Function.method", partial(_called, cls, method))


def _called(cls: Class, method: FunctionInfo, w: Walk, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    if isinstance(node, ast.expr):
        w.emit(Call, node, "torch.autograd.Function.method", cls, args, keywords)
    return w.apply(Function(method), args, keywords, node)
