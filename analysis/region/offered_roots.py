"""What a file of modules offers beside their forwards: methods that sample, encode or update a memory, and functions
that compute tensors from tensors. Nothing in sight says who calls them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import NONE, Choice, Tensor, Value
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.region.asked import ask
from graphmend.analysis.region.region import Region, Root
from graphmend.analysis.resolution.classes import find_method, is_module_class
from graphmend.analysis.resolution.parameters import declared
from graphmend.analysis.syntax.nodes import dotted
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

UNTRACED = ("torch.compiler.disable", "torch._dynamo.disable")
#: decorators of what computes with a module and is not trained by
_WITHOUT_GRADIENTS = ("torch.no_grad", "torch.inference_mode")
#: methods of tensors and optimizers that a training step calls
_TRAINING = frozenset({"backward", "zero_grad"})
#: what a program calls around a model
_DRIVING = frozenset({
    "builtins.open", "torch.save", "torch.load", "time.time", "time.perf_counter", "time.monotonic", "time.sleep",
})  # fmt: skip
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def offered_roots(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The public methods that compute with their module, of each class of modules with a forward, and the public
    functions beside such a class that take tensors and serve nothing else in the file. They count where nothing that is
    traced for another reason calls them, and where they give more than Python's own numbers."""
    classes = [cls for cls in module.classes.values() if offers(session, cls)]
    for cls in classes:
        for method in cls.methods.values():
            if _is_offered_method(session, method):
                evidence = f"{cls.name} is a torch.nn.Module; its {method.name} is assumed to be compiled"
                yield Root(Function(method, bound=Instance(cls)), Region("assumed", evidence, None, alone=True))
    if classes or session.settings.assume_compiled == "functions":
        for info in _offered_functions(session, module):
            evidence = f"{info.name} takes Tensors; its callers are assumed to be compiled"
            yield Root(Function(info), Region("assumed", evidence, None, alone=True))


def offers(session: ProgramView, cls: ClassInfo) -> bool:
    """Whether a class is one of modules with a forward. Which of its methods are roots, their bodies tell."""
    return is_module_class(session, cls) and find_method(session, cls, "forward") is not None


def _is_offered_method(session: ProgramView, method: FunctionInfo) -> bool:
    """Whether a method is public and computes with its module: it uses that, and takes a tensor that no caller leaves
    out, or says that it needs no gradients."""
    if not _is_public(method) or method.name == "forward" or not isinstance(method.node, ast.FunctionDef):
        return False
    if not ask(session, method, _computes) or ask(session, method, _drives):
        return False
    return method.decorated_with(*_WITHOUT_GRADIENTS) or ask(session, method, _needs_tensor)


def _offered_functions(session: ProgramView, module: ModuleInfo) -> list[FunctionInfo]:
    """The public functions of a file that need a tensor, but for those that serve a processor, a script."""
    offered = {
        name: info
        for name, info in module.functions.items()
        if _is_public(info) and isinstance(info.node, ast.FunctionDef) and not ask(session, info, _drives)
        if ask(session, info, _needs_tensor)
    }
    serving = _serving(session, module, offered.keys()) if offered else set()
    return [info for name, info in offered.items() if name not in serving]


def _is_public(info: FunctionInfo) -> bool:
    """Whether a function is for others, and is what its body says: a decorator from elsewhere may hand it to
    TorchScript, make an operator or a test of it."""
    return not info.name.startswith(("_", "test_")) and all(_is_seen_through(info, d) for d in info.decorators)


def _is_seen_through(info: FunctionInfo, decorator: ast.expr) -> bool:
    made_by = decorator.func if isinstance(decorator, ast.Call) else decorator
    own = isinstance(made_by, ast.Name) and made_by.id in info.module.functions
    return own or info.module.qualified(made_by) in _WITHOUT_GRADIENTS


def _drives(session: ProgramView, info: FunctionInfo) -> bool:
    """Whether a function trains, measures time, or reads or writes files: it calls what is compiled, and is not."""
    for part in walk(info.node):
        if isinstance(part, ast.Call):
            if isinstance(part.func, ast.Attribute) and part.func.attr in _TRAINING:
                return True
            if (info.module.qualified(part.func) or dotted(part.func)) in _DRIVING:
                return True
    return False


def _names(session: ProgramView, info: FunctionInfo) -> frozenset[str]:
    """The functions of its file that a function names."""
    functions = info.module.functions
    return frozenset(n.id for n in walk(info.node) if isinstance(n, ast.Name) and n.id in functions)


def _needs_tensor(session: ProgramView, info: FunctionInfo) -> bool:
    """Whether a parameter that no caller leaves out can only be a tensor."""
    parameters = info.parameters[info.owner is not None :]
    needed = (p for p in (*parameters, *info.node.args.kwonlyargs) if p.arg not in info.defaults)
    return any(_is_tensor(declared(session, info, p)) and not _is_asked_for_its_kind(info, p) for p in needed)


def _computes(session: ProgramView, method: FunctionInfo) -> bool:
    """Whether a method calls its receiver, or a method of that, or writes into what that holds: one that only draws,
    saves or counts is not traced."""
    if not method.parameters:
        return False
    me = method.parameters[0].arg
    for part in walk(method.node):
        if isinstance(part, ast.Call) and (_is_of(part.func, me) or _is(part.func, me)):
            return True
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store) and _is_of(part.value, me):
            return True
    return False


def _is_of(node: ast.expr, me: str) -> bool:
    return isinstance(node, ast.Attribute) and _is(node.value, me)


def _is(node: ast.expr, me: str) -> bool:
    return isinstance(node, ast.Name) and node.id == me


def _is_asked_for_its_kind(info: FunctionInfo, parameter: ast.arg) -> bool:
    """Whether a function tests which kind of object a parameter is that nobody declares: `isinstance(x, ndarray)`."""
    return parameter.annotation is None and any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id == "isinstance"
        and bool(n.args)
        and _is(n.args[0], parameter.arg)
        for n in walk(info.node)
    )


def _serving(session: ProgramView, module: ModuleInfo, offered: Collection[str]) -> set[str]:
    """The functions that code calls which is no part of what a model computes: methods of classes that are no modules,
    functions of other kinds, and what these call."""
    todo = [f for name, f in module.functions.items() if name not in offered and _is_public(f)]
    for cls in module.classes.values():
        if not is_module_class(session, cls):
            todo += cls.methods.values()
    found = _named_at_top(module)
    todo += [module.functions[name] for name in found]
    while todo:
        new = ask(session, todo.pop(), _names) - found
        found |= new
        todo += [module.functions[name] for name in new]
    return found


def _named_at_top(module: ModuleInfo) -> set[str]:
    """The functions that a file names outside of functions and classes: what is run where it is a script."""
    return named_functions(module, module.source.tree.body) if module.source.tree is not None else set()


def named_functions(module: ModuleInfo, statements: Iterable[ast.stmt]) -> set[str]:
    """The functions of a file that some statements of its top level name, but for those of functions and classes."""
    own = (s for s in statements if not isinstance(s, _DEFINITIONS))
    return {n.id for s in own for n in ast.walk(s) if isinstance(n, ast.Name)} & module.functions.keys()


def _is_tensor(value: Value) -> bool:
    """Whether a value that is not None can only be a tensor: what may as well be an array or a list of numbers is
    prepared for a model."""
    if isinstance(value, Choice):
        return all(option is NONE or _is_tensor(option) for option in value.options)
    return isinstance(value, Tensor) and not value.ndarray
