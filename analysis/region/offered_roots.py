"""Functions that a module offers to whoever computes with tensors: losses, operators, geometry. Nothing in sight says
who calls them; they take tensors and give tensors back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.driver.reach import text_of
from graphmend.analysis.lattice.dependence import may_hold_tensor
from graphmend.analysis.lattice.values import NONE, Choice, Tensor, Value
from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Function
from graphmend.analysis.region.region import Region, Root
from graphmend.analysis.resolution.annotations import annotated
from graphmend.analysis.resolution.classes import is_module_class
from graphmend.analysis.resolution.parameters import declared
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

_UNTRACED = ("torch.compiler.disable", "torch._dynamo.disable")


def offered_roots(session: ProgramView, module: ModuleInfo) -> Iterator[Root]:
    """The public functions of a module that compute tensors from tensors, but for those that serve other code of the
    module: a processor, a script."""
    for info in _offered(session, module):
        evidence = f"{info.name} takes Tensors and gives some back; its callers are assumed to be compiled"
        yield Root(Function(info), Region("assumed", evidence, None, alone=True))


def has_same_offers(session: ProgramView, module: ModuleInfo, before: Iterable[Root]) -> bool:
    """Whether the functions that a module offers are still the roots that they were."""
    before = list(before)
    compiled = {root.function.info for root in before if root.region.kind == "compiled"}
    were = {root.function.info for root in before if root.region.alone}
    return {info for info in _offered(session, module) if info not in compiled} == were


def _offered(session: ProgramView, module: ModuleInfo) -> Iterator[FunctionInfo]:
    offered = {info.name for info in module.functions.values() if _is_offered(session, info)}
    serving = _serving(session, module, offered) if offered else set()
    return (module.functions[name] for name in module.functions if name in offered - serving)


def _is_offered(session: ProgramView, info: FunctionInfo) -> bool:
    """Whether a function is public, needs a tensor and gives some back, or does not say what: its result tells then."""
    node = info.node
    if info.name.startswith("_") or not isinstance(node, ast.FunctionDef) or info.decorated_with(*_UNTRACED):
        return False
    needed = (p for p in (*info.parameters, *node.args.kwonlyargs) if p.arg not in info.defaults)
    if not any(_is_tensor(declared(session, info, p)) and not _is_asked_for_its_kind(info, p) for p in needed):
        return False
    given = annotated(session, info.module, node.returns, info.name, info.qualname)
    return node.returns is None or may_hold_tensor(given)


def _is_asked_for_its_kind(info: FunctionInfo, parameter: ast.arg) -> bool:
    """Whether a function tests which kind of object a parameter is that nobody declares: `isinstance(x, ndarray)`,
    `is_numpy_array(x)`."""
    return parameter.annotation is None and any(
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id.startswith(("isinstance", "is_"))
        and bool(n.args)
        and isinstance(n.args[0], ast.Name)
        and n.args[0].id == parameter.arg
        for n in walk(info.node)
    )


def _serving(session: ProgramView, module: ModuleInfo, offered: set[str]) -> set[str]:
    """The functions that code calls which is no part of what a model computes: methods of classes that are no modules,
    functions of other kinds, and what these call."""
    todo = [f for name, f in module.functions.items() if name not in offered and not name.startswith("_")]
    for cls in module.classes.values():
        if not is_module_class(session, cls):
            todo += cls.methods.values()
    found: set[str] = set()
    while todo:
        new = _named(todo.pop(), module.functions) - found
        found |= new
        todo += [module.functions[name] for name in new]
    return found


def _named(info: FunctionInfo, functions: Mapping[str, FunctionInfo]) -> set[str]:
    """Which functions of a module another one names."""
    text = text_of(info)
    if not any(name in text for name in functions):
        return set()
    return {node.id for node in walk(info.node) if isinstance(node, ast.Name)} & functions.keys()


def _is_tensor(value: Value) -> bool:
    """Whether a value that is not None can only be a tensor: what may as well be an array or a list of numbers is
    prepared for a model, and a dictionary of tensors is a state."""
    if isinstance(value, Choice):
        return all(option is NONE or _is_tensor(option) for option in value.options)
    return isinstance(value, Tensor) and not value.ndarray
