"""Which tensors a call changes in place, by what torch and Python say of the function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Tensor
from graphmend.transforms.code.bindings import reaching
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.operations import flags
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.writes.in_place_flags import constructed, works_in_place
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: methods of arrays, which share their memory with tensors
_OF_ARRAYS = frozenset("fill put itemset partition setfield".split())


@answers("effects")
def in_place_operands(facts: FunctionFacts, call: ast.Call) -> list[ast.expr]:
    """The tensors that a call changes in place: the receiver of `x.add_(1)`, `x` in `F.relu(x, True)` and in
    `getattr(x, "add_")(1)`, `out=x`.
    """
    return [*(k.value for k in call.keywords if k.arg == "out"), *_operands(facts, call.func, call)]


def _operands(facts: FunctionFacts, function: ast.expr, call: ast.Call) -> list[ast.expr]:
    name = qualified(facts, function) or ""
    folder, _, last = name.rpartition(".")
    first = call.args[:1] or [k.value for k in call.keywords if k.arg in ("input", "self")]
    of_module = folder in known.FUNCTIONAL and folder != "torch.Tensor"
    match function:
        case ast.Attribute(value=owner, attr=attr) if flags.is_in_place(attr):
            unbound = of_module or folder.startswith("torch.nn.") or _is_class(facts, owner)
            return first if unbound else [owner]
        case ast.Attribute(value=owner, attr=attr) if attr in _OF_ARRAYS and _may_be_array(facts, owner):
            return [owner]
        case ast.Call():
            return methods_by_name(facts, function) or (first if _is_caller(facts, function) else [])
        case ast.Name() if isinstance(bound := reaching(facts, function), (ast.Attribute, ast.Call)):
            return _operands(facts, bound, call)
    if folder in ("operator", "_operator"):
        return first if last in flags.IN_PLACE_OPERATORS else []
    if of_module and (last.endswith("_") or works_in_place(call, flags.INPLACE.get(last))):
        return first
    if isinstance(value := facts.value(function), ExternalInstance) and value.cls.startswith("torch.nn."):
        position = flags.LAYER_INPLACE.get(value.cls.rpartition(".")[2])
        made = [c for c in constructed(facts, function) if isinstance(c, ast.Call)]
        return first if any(works_in_place(c, position) for c in made) else []
    return []


def methods_by_name(facts: FunctionFacts, call: ast.Call) -> list[ast.expr]:
    """The tensor of which `getattr(x, "add_")` gives a method that changes it; a name that is not known may be one."""
    match call:
        case ast.Call(args=[of, name, *_]) if qualified(facts, call.func) == "builtins.getattr":
            known = constant(name)
            called = isinstance(above := facts.parent(call), ast.Call) and above.func is call
            changes = flags.is_in_place(known) if isinstance(known, str) else called
            return [of] if changes and not _is_class(facts, of) else []
    return []


def _is_caller(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is it a function that calls a method that changes a tensor: `methodcaller("add_", 1)`, or one of the class?"""
    match call:
        case ast.Call(func=function, args=[ast.Constant(value=str(name)), *_]):
            return flags.is_in_place(name) and qualified(facts, function) == "operator.methodcaller"
        case ast.Call(func=function, args=[of, ast.Constant(value=str(name)), *_]):
            return flags.is_in_place(name) and _is_class(facts, of) and qualified(facts, function) == "builtins.getattr"
    return False


def _is_class(facts: FunctionFacts, node: ast.expr) -> bool:
    return qualified(facts, node) in ("torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter")


def _may_be_array(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return not isinstance(value, Container) and not (isinstance(value, Tensor) and not value.ndarray)
