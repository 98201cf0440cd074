"""Assignment: binds names, unpacks patterns, and updates attributes and elements."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Operation, SetAttribute, Subscript
from graphmend.analysis.interpreter.operations.objects import CHANGED, used
from graphmend.analysis.interpreter.operations.subscripts import element_of, index_of
from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import TRUE, UNKNOWN, Container, Tensor, Value, beginning, join
from graphmend.analysis.program.entities import Instance, Record
from graphmend.analysis.syntax.nodes import dotted
from graphmend.analysis.syntax.scopes import is_shared

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


def assign(w: Walk, target: ast.expr, value: Value, augmented: bool = False) -> None:
    """Bind a target: a name, a pattern, an attribute or an element."""
    if isinstance(target, ast.Name):
        if value.opaque and _is_global(w, target.id):
            used(w, target, "global", value)
        bind(w, target.id, value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(w, target, value)
    elif isinstance(target, ast.Starred):
        assign(w, target.value, value)
    elif isinstance(target, ast.Attribute):
        owner = w.eval(target.value)
        w.emit(SetAttribute, target, owner, target.attr, value, augmented)
        path = dotted(target)
        if path is not None and isinstance(owner, (Instance, ExternalInstance, Tensor)):
            bind(w, path, value)
        elif isinstance(owner, Record):
            _store_field(w, target, owner, value)
    elif isinstance(target, ast.Subscript):
        owner = w.eval(target.value)
        w.emit(Subscript, target, owner, index_of(w, target.slice), True)
        if owner.opaque:
            used(w, target, "store", owner)
        _store_item(w, target, owner, value)


def delete(w: Walk, node: ast.Delete) -> None:
    """Unbind the targets of a `del` statement."""
    for target in node.targets:
        if isinstance(target, ast.Attribute) and ((owner := w.eval(target.value)).opaque or owner.dispatches):
            used(w, target, "delete", owner)
        path = dotted(target)
        if path is not None:
            if isinstance(target, ast.Name) and is_shared(w.info, path):
                w.emit(Operation, target, "del", UNKNOWN)
            w.env.pop(path, None)


def _is_global(w: Walk, name: str) -> bool:
    """Whether the function declares a name as global."""
    body = w.info.node.body
    return isinstance(body, list) and any(isinstance(s, ast.Global) and name in s.names for s in body)


def bind(w: Walk, name: str, value: Value) -> None:
    """Bind a name or dotted path; values of longer paths through it are dropped."""
    env = w.env
    if "." in name:
        w.path_ends.add(name.rpartition(".")[2])
    if name in env and w.path_ends:
        prefix = name + "."
        for path in [p for p in env if p.startswith(prefix)]:
            del env[path]
    env[name] = value


def _unpack(w: Walk, target: ast.Tuple | ast.List, value: Value) -> None:
    count = len(target.elts)
    starred = next((i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)), None)
    items = value.items if isinstance(value, Container) else None
    if items is not None and starred is None and len(items) == count:
        for one, its in zip(target.elts, items, strict=True):
            assign(w, one, its)
    elif items is not None and starred is not None and len(items) >= count - 1:
        late = count - starred - 1
        middle = items[starred : len(items) - late]
        for one, its in zip(target.elts[:starred], items, strict=False):
            assign(w, one, its)
        assign(w, target.elts[starred], Container("list", middle))
        for one, its in zip(target.elts[starred + 1 :], items[len(items) - late :], strict=True):
            assign(w, one, its)
    else:
        element = element_of(w, value, target)
        known = beginning(value) if isinstance(value, Container) and value.kind == "tuple" else {}
        for index, one in enumerate(target.elts):
            if isinstance(one, ast.Starred):
                known = {}
                assign(w, one, Container("list", of=element))
            else:
                assign(w, one, known.get(index, element))


def measure(w: Walk, target: ast.Tuple, node: ast.expr) -> None:
    """Behind `a, b = x.shape`, `x` has two dimensions: refines its value where that was not known."""
    whole = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else node
    if not isinstance(whole, ast.Attribute) or whole.attr not in ("shape", "size"):
        return
    path = dotted(whole.value)
    value = w.env.get(path) if path is not None else None
    open_end = any(isinstance(e, ast.Starred) for e in target.elts)
    if path is not None and not open_end and isinstance(value, Tensor) and value.rank is None:
        w.env[path] = value.of_rank(len(target.elts))


def _store_item(w: Walk, target: ast.Subscript, owner: Value, value: Value) -> None:
    """`name[key] = value`: rebinds the name to a container that may also hold the value."""
    path = dotted(target.value)
    if path is not None and path not in w.env and isinstance(owner, Container) and owner.kind == "dict":
        w.env[CHANGED] = TRUE
    if path is None or not isinstance(owner, Container) or path not in w.env:
        return
    if owner.kind == "dict":
        fields = dict(owner.fields or {})
        if isinstance(target.slice, ast.Constant):
            fields[target.slice.value] = value
        given = isinstance(owner.of, Tensor) and owner.of.graph_input  # as its type says, which holds for all entries
        other = value if owner.of is None else owner.of if given and value is UNKNOWN else join(owner.of, value)
        w.env[path] = Container("dict", None, other, fields)
    else:
        w.env[path] = Container(owner.kind, None, value if owner.items == () else join(owner.element, value))


def _store_field(w: Walk, target: ast.Attribute, owner: Record, value: Value) -> None:
    """`name.field = value` of a dataclass."""
    path = dotted(target.value)
    if path is not None and path in w.env:
        fields = {**(owner.fields or {}), target.attr: value}
        w.env[path] = owner.with_parts(owner.items, owner.of, fields)
