"""Methods of lists, tuples, dictionaries and sets."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.events import Contains, Operation
from graphmend.analysis.interpreter.operations import dictionaries
from graphmend.analysis.lattice.arguments import Arguments, Keywords
from graphmend.analysis.lattice.values import INT, NONE, UNKNOWN, Const, Container, Value, join, join_all
from graphmend.analysis.program.entities import Record
from graphmend.analysis.syntax.nodes import dotted

if TYPE_CHECKING:
    from graphmend.analysis.interpreter.interface import Walk


def container_method(w: Walk, value: Container, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    """A method of a list, tuple, dict or set. What adds an element rebinds the name that holds the container."""
    if name in ("append", "add", "appendleft", "insert", "extend", "update", "setdefault"):
        return _add(w, value, name, args, keywords, node)
    if value.kind == "dict":
        return dictionaries.method(value, name, args)
    if name in ("pop", "popleft", "__getitem__"):
        return value.element
    if name == "sort":
        return _sort(w, value, keywords, node)
    if name in ("copy", "to", "eval", "train", "half", "float", "cuda", "cpu"):
        return value
    if name == "remove" and args and isinstance(node, ast.expr):
        w.emit(Operation, node, "list.remove", args[0])
    if name in ("index", "count", "__len__"):
        if not w.silent and isinstance(node, ast.expr):
            w.emit(Contains, node, args[0] if args else UNKNOWN, value)
        return INT
    if isinstance(value, Record):
        if name in ("to_tuple", "values"):
            return Container("tuple", of=join_all((value.fields or {}).values()))
        if name == "get" and args and isinstance(args[0], Const):
            return (value.fields or {}).get(args[0].value, UNKNOWN)
    if value.kind == "generator" and name == "send":
        return value.element
    if name == "_replace":
        return value.with_parts(value.items, value.of, {**(value.fields or {}), **keywords})
    return UNKNOWN


def _sort(w: Walk, value: Container, keywords: Keywords, node: ast.AST) -> Value:
    w.external("builtins.sorted", None, (value,), keywords, node)
    return NONE


def _add(w: Walk, value: Container, name: str, args: Arguments, keywords: Keywords, node: ast.AST) -> Value:
    func = node.func if isinstance(node, ast.Call) else None
    path = dotted(func.value) if isinstance(func, ast.Attribute) else None
    known = path is not None and path in w.env
    if path is None or not known or not (args or keywords):
        return args[1] if name == "setdefault" and len(args) > 1 else NONE
    if value.kind == "dict":
        return dictionaries.fill(w, path, value, name, args, keywords)
    new = args[-1] if name != "extend" else args[0].element if isinstance(args[0], Container) else UNKNOWN
    if value.items is not None and name == "append" and len(value.items) < 8 and not w.situation.blocks:
        w.env[path] = Container(value.kind, (*value.items, new))
    else:
        w.env[path] = Container(value.kind, None, new if value.items == () else join(value.element, new))
    return NONE
