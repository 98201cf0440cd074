"""Evaluation of expressions: one function for each kind of node, in `EVALUATE`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from graphmend.analysis.interpreter.calls.dispatch import call
from graphmend.analysis.interpreter.events import Operation, Subscript
from graphmend.analysis.interpreter.operations import errors, own_objects
from graphmend.analysis.interpreter.operations.attributes import attribute
from graphmend.analysis.interpreter.operations.conditions import condition
from graphmend.analysis.interpreter.operations.dictionaries import spread
from graphmend.analysis.interpreter.operations.loads import MAY_BE_UNTAKEN, loaded
from graphmend.analysis.interpreter.operations.objects import used
from graphmend.analysis.interpreter.operations.operators import binop, boolop, compare, unary
from graphmend.analysis.interpreter.operations.subscripts import element_of, index_of, item
from graphmend.analysis.interpreter.walk.assignment import assign, bind
from graphmend.analysis.lattice.external import ExternalName, PartialString, UnresolvedName, WrittenText
from graphmend.analysis.lattice.values import (
    FALSE,
    NONE,
    STR,
    TRUE,
    UNKNOWN,
    Const,
    Container,
    SparseTensor,
    Tensor,
    Value,
    join,
    join_all,
    present,
    tensor_in,
)
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.resolution.names import global_name
from graphmend.analysis.syntax.nodes import dotted

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


def _constant(w: Walk, node: ast.Constant) -> Value:
    value = node.value
    if value is None:
        return NONE
    if value is True:
        return TRUE
    if value is False:
        return FALSE
    return Const(value)


def _name(w: Walk, node: ast.Name) -> Value:
    name = node.id
    value = w.env.get(name)
    if value is not None:
        if value.__class__ in MAY_BE_UNTAKEN:
            loaded(w, node, value)
        return value
    if name in w.lazy:
        known = w.lazy[name]
        if isinstance(known, Value):
            return known
        w.env[name] = w.lazy[name] = UNKNOWN  # a definition in a circle
        w.env[name] = w.lazy[name] = value = join_all(map(w.eval, known))
        return value
    if w.closure is not None and name in w.closure:
        return w.closure[name]
    value = global_name(w.session, w.module, name)
    if isinstance(value, UnresolvedName):
        if not w.silent:
            errors.read(w, node, value)
        return value
    if value is UNKNOWN:
        value = w.session.driven_variable(w.module, name)
    if isinstance(value, SparseTensor):
        loaded(w, node, value)
    if value.opaque:
        used(w, node, "load", value)
    if isinstance(value, Container) and value.kind == "set":
        w.emit(Operation, node, "load", value)
    return value


def _attribute(w: Walk, node: ast.Attribute) -> Value:
    base = node.value
    if node.attr in w.path_ends:
        path = dotted(node)
        known = w.env.get(path) if path is not None else None
        if known is not None:
            if known.__class__ in MAY_BE_UNTAKEN:
                loaded(w, node, known)
            if node.attr == "__dict__" and isinstance(known, Container):
                w.emit(Operation, node, "__dict__", known)
            return known
    owner = w.eval(base)
    value = attribute(w, owner, node.attr, node)
    if value.__class__ in MAY_BE_UNTAKEN:
        loaded(w, node, value, owner)
    elif value.__class__ is Container and value.kind == "set" and owner.__class__ is Instance and not owner.made_inside:
        w.emit(Operation, node, "load", value)
    return value


def _tuple(w: Walk, node: ast.Tuple | ast.List | ast.Set) -> Value:
    kind = {ast.Tuple: "tuple", ast.List: "list", ast.Set: "set"}[node.__class__]
    items: list[Value] = []
    spread: list[Value] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            value = w.eval(element.value)
            if isinstance(value, Container) and value.items is not None:
                items.extend(value.items)
            else:
                spread.append(element_of(w, value, element))
        else:
            items.append(w.eval(element))
    if kind == "set":
        used(w, node, "hash", *items)
        if w.session.mode.options:
            w.emit(Operation, node, "set display", Container(kind, tuple(items)))
    if spread:
        return Container(kind, of=join_all([*items, *spread]))
    return Container(kind, tuple(items))


def _dict(w: Walk, node: ast.Dict) -> Value:
    fields: dict[Any, Value] = {}
    values: list[Value] = []
    for key, value_node in zip(node.keys, node.values, strict=True):
        value = w.eval(value_node)
        if key is None:
            if isinstance(value, Container):
                more = value.fields or {}
                spread(fields, more)
                values += map(present, more.values())
                values += [value.of] if value.of is not None else []
            else:
                values.append(UNKNOWN)
            continue
        name = w.eval(key)
        if name.opaque:
            used(w, key, "hash", name)
        values.append(value)
        if isinstance(name, Const):
            try:
                fields[name.value] = value
            except TypeError:
                values.append(UNKNOWN)
    return Container("dict", None, join_all(values) if values else None, fields)


def _ternary(w: Walk, node: ast.IfExp) -> Value:
    truth, yes, no = condition(w, node.test, "ternary")
    if truth is not None:
        w.env.update(yes if truth else no)
        return w.eval(node.body if truth else node.orelse)
    before = w.env
    with w.restoring():
        w.situation.conditional += 1
        w.env = {**before, **yes}
        first = w.eval(node.body)
        w.env = {**before, **no}
        second = w.eval(node.orelse)
    w.env = before
    return join(first, second)


def _subscript(w: Walk, node: ast.Subscript) -> Value:
    value = w.eval(node.value)
    index = index_of(w, node.slice)
    w.emit(Subscript, node, value, index, False)
    if value.opaque:
        used(w, node, "subscript", value)
    if index.dispatches:
        own_objects.indexes(w, node, value, index)
    if isinstance(value, ExternalName) and value.name.startswith("typing.") and tensor_in(index) is not None:
        w.emit(Operation, node, "subscript by a tensor", value)
    element = item(w, value, index, node)
    if element.__class__ in MAY_BE_UNTAKEN:
        loaded(w, node, element)
    return element


def _slice(w: Walk, node: ast.Slice) -> Value:
    return index_of(w, node)


#: comprehensions within comprehensions that are evaluated for each known item
_UNROLLED = 2


def _comprehension(w: Walk, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    outer = w.env
    with w.restoring():
        w.env = dict(outer)
        result = _comprehended(w, node)
    w.env = outer
    return result


def _comprehended(w: Walk, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
    """The value of a comprehension; the caller restores environment and situation."""
    filtered = False
    known: tuple[Value, ...] | None = None
    for generator in node.generators:
        over = w.eval(generator.iter)
        if (
            isinstance(over, Container)
            and over.items is not None
            and len(node.generators) == 1
            and len(over.items) <= 8
            and w.unrolled < _UNROLLED
        ):
            known = over.items
        assign(w, generator.target, element_of(w, over, generator.iter))
        for test in generator.ifs:
            truth, yes, _ = condition(w, test, "filter")
            w.env.update(yes)
            if truth is None:
                w.situation.conditional += 1
                filtered = True
    if isinstance(node, ast.DictComp):
        w.eval(node.key)
        return Container("dict", of=w.eval(node.value), fields={})
    kind = {ast.ListComp: "list", ast.SetComp: "set", ast.GeneratorExp: "generator"}[node.__class__]
    element = w.eval(node.elt)
    if known is None or filtered or kind != "list":
        return Container(kind, of=element)
    items = []
    w.silent += 1
    w.unrolled += 1
    for one in known:
        assign(w, node.generators[0].target, one)
        items.append(w.eval(node.elt))
    return Container(kind, tuple(items))


def _lambda(w: Walk, node: ast.Lambda) -> Value:
    return Function(w.session.inner_function(node, w.info), closure=w.env)


def _named(w: Walk, node: ast.NamedExpr) -> Value:
    value = w.eval(node.value)
    bind(w, node.target.id, value)
    return value


def _joined(w: Walk, node: ast.JoinedStr) -> Value:
    known: list[str | None] = []
    written = False
    for part in node.values:
        value = w.eval(part)
        if value.dispatches:
            own_objects.written(w, node, part, value)
        written = written or (isinstance(value, Tensor) and not value.likely) or isinstance(value, WrittenText)
        plain = not isinstance(part, ast.FormattedValue) or (part.conversion == -1 and part.format_spec is None)
        known.append(str(value.value) if plain and isinstance(value, Const) else None)
    if None not in known:
        return Const("".join(filter(None, known)))
    if written:
        return WrittenText()
    return PartialString(known[0] or "", known[-1] or "") if known[0] or known[-1] else STR


def _starred(w: Walk, node: ast.Starred) -> Value:
    return w.eval(node.value)


def _yield(w: Walk, node: ast.Yield) -> Value:
    if isinstance(w.info.node, ast.AsyncFunctionDef):
        w.emit(Operation, node, "asynchronous yield", UNKNOWN)
    w.yields.append(w.eval(node.value) if node.value is not None else NONE)
    return UNKNOWN


def _yield_from(w: Walk, node: ast.YieldFrom) -> Value:
    value = w.eval(node.value)
    errors.iterated(w, node, value)
    w.yields.append(element_of(w, value, node))
    return UNKNOWN


def _await(w: Walk, node: ast.Await) -> Value:
    value = w.eval(node.value)
    w.emit(Operation, node, "await", value)
    return value


EVALUATE: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: call,
    ast.Tuple: _tuple,
    ast.List: _tuple,
    ast.Set: _tuple,
    ast.Dict: _dict,
    ast.BoolOp: boolop,
    ast.UnaryOp: unary,
    ast.BinOp: binop,
    ast.Compare: compare,
    ast.IfExp: _ternary,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.JoinedStr: _joined,
    ast.FormattedValue: lambda w, node: w.eval(node.value),
    ast.Starred: _starred,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Await: _await,
}
