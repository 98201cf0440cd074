"""What raises on every run: names that are not bound, arguments that do not fit. TorchDynamo ends the graph there."""

from __future__ import annotations

import ast
import re
from collections.abc import Set
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Error, Operation
from graphmend.analysis.lattice.external import UndefinedName
from graphmend.analysis.lattice.values import MarkedTensor, Tensor, Value
from graphmend.analysis.program.entities import Class, Function, Instance
from graphmend.analysis.syntax.scopes import certainly_read

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk
    from graphmend.analysis.lattice.arguments import Arguments, Keywords

#: classes of tensors, and what makes tensors of them
_SUBCLASSES = re.compile(r"\bclass \w+\([^)]*Tensor\b|as_subclass|DTensor|NestedTensor")


#: methods that Dynamo follows for objects and classes of the program only
_STORES = frozenset({"__setitem__", "__setattr__", "__delitem__", "__delattr__"})


_POP = "torch.overrides._pop_mode"
#: what makes modules
_MODULES = frozenset(
    {"ModuleType", "import_module", "module_from_spec", "__import__", "type", "", "get", "Mock", "MagicMock"}
)


def read(w: Walk, node: ast.Name, value: Value) -> None:
    """A name is read that is none of the function's own that are bound here, and was looked up outside."""
    if w.statement is None:
        return
    if w.info.bindings.is_unbound(node.id, node, w.statement):
        w.emit(Error, node, "GB0011", f"`{node.id}` is not bound yet, or not any more")
    elif value.__class__ is UndefinedName and w.closure is None and node.id not in w.info.bindings.places:
        w.emit(Error, node, "GB0354", f"nothing defines `{node.id}`")


def called(w: Walk, node: ast.Call, callee: Value, args: Arguments, keywords: Set[str]) -> None:
    """A function of the program is called with these arguments by position, and these by name."""
    if not isinstance(callee, Function) or w.statement is None:
        return
    info = callee.info
    if info.name in _STORES and args and isinstance(args[0], Tensor) and callee.bound is None:
        w.emit(Operation, node, "call of a special method", callee)
    if info.outer is w.info and callee.closure is not None:
        _captured(w, node, callee)
    if not _is_exact(callee):
        return
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return
    missing = _misfit(callee, len(args), keywords)
    if missing:
        w.emit(Error, node, "GB7312", f"{info.name}() {missing}")


def torch_called(
    w: Walk, node: ast.AST, name: str, receiver: Value | None, args: Arguments, keywords: Keywords
) -> None:
    """A function of torch is called with these keywords, or a method of a tensor."""
    if not isinstance(node, ast.Call):
        return
    torch = w.session.torch
    unknown = torch.unknown_keyword(name, keywords) if keywords else None
    if unknown is not None and all(k.arg is not None for k in node.keywords):
        call = f".{name.rpartition('.')[2]}()" if receiver is not None else f"{name}()"
        w.emit(Error, node, "GB0112", f"{call} has no parameter `{unknown}`")
    if args and args[-1].__class__ is MarkedTensor:
        together(w, node, *args, *(() if receiver is None else (receiver,)))
    if isinstance(receiver, Tensor) and _is_computed(w, node.func, receiver):
        last = name.rpartition(".")[2]
        if not torch.has_method(last) and name.startswith("torch.Tensor.") and not _is_added(w, last):
            w.emit(Error, node, "GB6270", f"a Tensor has no method `{last}`")
    elif name == _POP and "_push_mode(" not in w.module.source.text and not w.situation.blocks:
        w.emit(Error, node, "GB0234", "no function mode was pushed")


def _is_computed(w: Walk, method: ast.expr, value: Tensor) -> bool:
    """Whether the owner of a method is a local that arithmetic gave its only value: parts of values and what
    annotations promise may be something else, as a method says that no tensor has."""
    if value.likely or value.ndarray or value.graph_input or value.origin is None:
        return False
    made, owner = value.origin.node, method.value if isinstance(method, ast.Attribute) else None
    if not isinstance(made, ast.BinOp) or not isinstance(owner, ast.Name):
        return False
    places = w.info.bindings.places.get(owner.id, [])
    return len(places) == 1 and places[0][0] == made.lineno and owner.id not in w.info.bindings.parameters


def imported(w: Walk, node: ast.Import | ast.ImportFrom) -> None:
    """A module is imported; the program's own top level may have put something else in its place."""
    tree = w.module.source.tree
    if w.silent or tree is None or "sys.modules[" not in w.module.source.text:
        return
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not (isinstance(target, ast.Subscript) and w.module.qualified(target.value) == "sys.modules"):
            continue
        assert isinstance(statement, ast.Assign)
        made = statement.value.func if isinstance(statement.value, ast.Call) else None
        is_object = made is not None and (w.module.qualified(made) or "").rpartition(".")[2] not in _MODULES
        if is_object and isinstance(target.slice, ast.Constant) and target.slice.value in names:
            w.emit(Error, node, "GB0022", f"`{target.slice.value!s}` in sys.modules is no module")


def iterated(w: Walk, node: ast.YieldFrom, value: Value) -> None:
    """A generator hands on what another object yields: its `__iter__` must return an iterator."""
    begin = value.info.methods.get("__iter__") if isinstance(value, Instance) else None
    if begin is None or w.silent:
        return
    iterator = w.session.enter(Function(begin, bound=value), (), {}, w, node)
    if isinstance(iterator, Instance) and not iterator.info.node.bases and "__iter__" not in iterator.info.methods:
        w.emit(Error, node, "GB0094", f"{iterator.info.name} has no `__iter__`")


def together(w: Walk, node: ast.AST, *values: Value) -> None:
    """An operation takes these tensors: they must be on one device. One without dimensions may be on the CPU."""
    devices = {v.mark("device") for v in values if isinstance(v, MarkedTensor) and v.rank} - {None}
    if len(devices) > 1 and isinstance(node, (ast.expr, ast.stmt)):
        w.emit(Error, node, "GB5173", f"its tensors are on {' and '.join(sorted(devices))}")


def _is_added(w: Walk, name: str) -> bool:
    """Whether the text may give tensors an attribute, or has tensors of a class of its own."""
    text = w.module.source.text
    return _SUBCLASSES.search(text) is not None or re.search(rf"\b{name}\b(?!\()", text) is not None


def _captured(w: Walk, node: ast.Call, callee: Function) -> None:
    """An inner function is called that reads a variable of the function around it."""
    assert w.statement is not None
    own = callee.info.bindings
    for name in certainly_read(callee.info.node):
        if name.id in w.env or name.id in own.places or name.id in own.parameters:
            continue
        if w.info.bindings.is_unbound(name.id, node, w.statement):
            w.emit(Error, name, "GB0091", f"`{name.id}` is not bound yet when {callee.info.name}() is called")


def _is_exact(callee: Function) -> bool:
    """Whether a call runs this very function: nothing wraps it, nothing else has its name, no subclass overrides it."""
    info = callee.info
    if info.decorators:
        return False
    if info.owner is not None:
        return isinstance(callee.bound, Instance) and callee.bound.made_inside and callee.bound.info is info.owner
    if callee.bound is not None and not isinstance(callee.bound, (Instance, Class)):
        return False
    if info.outer is not None:
        return True
    module, name = info.module, info.name
    others = (module.globals, module.imports, module.classes, module.redefined, module.rebound)
    return not any(name in other for other in others)


def _misfit(callee: Function, count: int, keywords: Set[str]) -> str:
    """How the arguments of a call do not fit the parameters; an empty text where they do."""
    given, info = callee.info.node.args, callee.info
    count += callee.bound is not None and not info.is_static
    names = [p.arg for p in info.parameters]
    if count > len(names) and given.vararg is None:
        return f"takes {len(names)} arguments at most, not {count}"
    only_positional = {p.arg for p in given.posonlyargs}
    by_name = {*names, *(p.arg for p in given.kwonlyargs)} - only_positional
    unknown = sorted(keywords - by_name) if given.kwarg is None else []
    if unknown:
        return f"has no parameter `{unknown[0]}`"
    twice = [name for name in names[:count] if name in keywords and name not in only_positional]
    if twice:
        return f"gets `{twice[0]}` twice"
    needed = [*names[count:], *(p.arg for p in given.kwonlyargs)]
    left_out = [name for name in needed if name not in keywords and name not in info.defaults]
    return f"needs `{left_out[0]}`" if left_out else ""
