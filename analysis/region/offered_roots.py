"""Methods that a module offers beside its forward: sampling, encoding, the update of a memory. Nothing in sight says
who calls them; they compute with the module."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import NONE, Choice, Tensor, Value
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.region.region import Region, Root
from graphmend.analysis.resolution.classes import find_method, is_module_class
from graphmend.analysis.resolution.parameters import declared
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

UNTRACED = ("torch.compiler.disable", "torch._dynamo.disable")
#: decorators of what computes with a module and is not trained by
_WITHOUT_GRADIENTS = ("torch.no_grad", "torch.inference_mode")


def offered_roots(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The public methods that compute with their module, of each class of modules with a forward. They count where
    nothing that is traced for another reason calls them, and where they give more than Python's own numbers."""
    for cls in module.classes.values():
        if not offers(session, cls):
            continue
        for method in cls.methods.values():
            if _is_offered(session, method):
                evidence = f"{cls.name} is a torch.nn.Module; its {method.name} is assumed to be compiled"
                yield Root(Function(method, bound=Instance(cls)), Region("assumed", evidence, None, alone=True))


def offers(session: ProgramView, cls: ClassInfo) -> bool:
    """Whether a class is one of modules with a forward. Which of its methods are roots, their bodies tell."""
    return is_module_class(session, cls) and find_method(session, cls, "forward") is not None


def _is_offered(session: ProgramView, method: FunctionInfo) -> bool:
    """Whether a method is public and computes with its module: it uses that, and takes a tensor that no caller leaves
    out, or says that it needs no gradients."""
    node = method.node
    if method.name.startswith("_") or method.name == "forward" or not isinstance(node, ast.FunctionDef):
        return False
    if method.is_static or method.is_classmethod or method.is_property or method.decorated_with(*UNTRACED):
        return False
    if not method.parameters or not _computes(method, node):
        return False
    if method.decorated_with(*_WITHOUT_GRADIENTS):
        return True
    needed = (p for p in (*method.parameters[1:], *node.args.kwonlyargs) if p.arg not in method.defaults)
    return any(_is_tensor(declared(session, method, p)) for p in needed)


def _computes(method: FunctionInfo, node: ast.FunctionDef) -> bool:
    """Whether a method calls its receiver, or a method of that, or writes into what that holds: one that only draws,
    saves or counts is not traced."""
    me = method.parameters[0].arg
    for part in walk(node):
        if isinstance(part, ast.Call) and (_is_of(part.func, me) or _is(part.func, me)):
            return True
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and _is_of(part.value, me):
            return True
    return False


def _is_of(node: ast.expr, me: str) -> bool:
    return isinstance(node, ast.Attribute) and _is(node.value, me)


def _is(node: ast.expr, me: str) -> bool:
    return isinstance(node, ast.Name) and node.id == me


def _is_tensor(value: Value) -> bool:
    """Whether a value that is not None can only be a tensor: what may as well be an array or a list of numbers is
    prepared for a model."""
    if isinstance(value, Choice):
        return all(option is NONE or _is_tensor(option) for option in value.options)
    return isinstance(value, Tensor) and not value.ndarray
