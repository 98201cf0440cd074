"""What does a function look as if it changed in place, also by the functions of its file that it calls?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import parameters, writes
from graphmend.transforms.legality.bodies.local_names import bindings_of
from graphmend.transforms.legality.operations import aliases, flags

#: what makes a tensor that nothing else has
MAKERS = frozenset("zeros ones full empty zeros_like ones_like full_like empty_like clone arange".split())
_DEEPEST = 8
_NEW = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Constant, ast.JoinedStr)


class Changed(NamedTuple):
    """What a function may change in place."""

    parameters: frozenset[str]
    attributes: frozenset[str]
    """Those of the object whose method it is."""
    unknown: bool
    """Is it something that it does not name?"""

    def __bool__(self) -> bool:
        return bool(self.parameters or self.attributes or self.unknown)


@lru_cache(maxsize=256)
def changed_in(info: FunctionInfo, owner: ClassInfo | None, *, by_name: bool = False) -> Changed:
    """What looks like a change in place in a function, of more than what it has made itself, and in those of its file
    that it calls; `owner` is the class of the object whose method it is. With `by_name` what a
    call gives has memory of its own, but for views: what a module gives is mostly new.
    """
    return _changed(info, owner, (), by_name)


def _changed(info: FunctionInfo, owner: ClassInfo | None, callers: tuple[FunctionInfo, ...], by_name: bool) -> Changed:
    function = info.node
    reader = _Reader(function, owner is not None, by_name)
    for call in (n for n in nodes_in(function) if isinstance(n, ast.Call)):
        for called, of in _called(info, owner, call):
            if called not in callers and called is not info and len(callers) < _DEEPEST:
                reader.passes_on(call, called, of, _changed(called, of, (*callers, info), by_name))
    own = {*_own_stores(getattr(function, "body", ()))}
    for node in nodes_in(function):
        match node:
            case ast.AugAssign(target=target) if target not in own and not reader.is_tuple(target):
                reader.changes(target)
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) if node not in own:
                reader.changes(value)
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args) if flags.is_in_place(attr):
                reader.changes(value)
                if args and reader.is_outside(value):
                    reader.changes(args[0])  # `F.relu_(x)`
            case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str(attr)), *_]) if (
                flags.is_in_place(attr)
            ):
                reader.changes(value)
            case ast.Call(args=args, keywords=keywords):
                for keyword in keywords:
                    if keyword.arg == "out":
                        reader.changes(keyword.value)
                    elif keyword.arg == "inplace" and args:
                        reader.changes(args[0])
    return Changed(frozenset(reader.parameters), frozenset(reader.attributes), reader.unknown)


class _Reader:
    """Follows what is changed to where it comes from."""

    def __init__(self, function: ast.AST, is_method: bool, by_name: bool) -> None:
        named = parameters(function) if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) else []
        self._me = named[0] if is_method and named else None
        self._given = {*named} - {self._me}
        self._by_name = by_name
        self._bound: dict[str, list[ast.expr | None]] = {}
        for node in nodes_in(function):
            for name, value in bindings_of(node):
                self._bound.setdefault(name, []).append(value)
        self.parameters: set[str] = set()
        self.attributes: set[str] = set()
        self.unknown = False
        self._seen: set[str] = set()

    def is_outside(self, node: ast.expr) -> bool:
        """Is it a name, or begins with one, that the function does not bind: a module, as `F` in `F.relu_(x)`?"""
        while isinstance(node, ast.Attribute):
            node = node.value
        own = {self._me, *self._given, *self._bound}
        return isinstance(node, ast.Name) and node.id not in own

    def _is_me(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self._me

    def is_tuple(self, node: ast.expr) -> bool:
        """Does a name stand for tuples that the function has made, of which `+=` makes others?"""
        bound = self._bound.get(node.id, []) if isinstance(node, ast.Name) else []
        return bool(bound) and all(value is not None and _makes_tuple(value) for value in bound)

    def passes_on(self, call: ast.Call, called: FunctionInfo, owner: ClassInfo | None, changed: Changed) -> None:
        """A function that is called changes what it is given, or what the object holds."""
        self.attributes |= changed.attributes
        self.unknown |= changed.unknown
        for argument in arguments_for(call, called, owner, changed):
            self.changes(argument)

    def changes(self, node: ast.expr) -> None:
        """The object behind an expression, or one that it may be a part of, is changed."""
        match node:
            case ast.Attribute(value=ast.Name(id=me), attr=attr) if me == self._me:
                self.attributes.add(attr)
            case ast.Name(id=name):
                self._name(name)
            case ast.Attribute(value=value) | ast.Subscript(value=value) | ast.Starred(value=value):
                self.changes(value)
            case ast.Call(func=ast.Attribute(value=of, attr=attr)) if attr in aliases.NEW | MAKERS and not self._is_me(
                of
            ):
                pass  # a tensor of its own
            case ast.Call(func=function, args=args) if self._by_name:
                if isinstance(function, ast.Attribute) and function.attr in aliases.VIEWS | aliases.MAY_BE_INPUT:
                    self.changes(args[0] if args and self.is_outside(function) else function.value)
            case ast.Call(func=function, args=args, keywords=keywords):
                if isinstance(function, ast.Attribute) and not self.is_outside(function):
                    own = isinstance(function.value, ast.Name) and function.value.id == self._me
                    self.changes(function if own else function.value)
                for argument in (*args, *(k.value for k in keywords)):
                    self.changes(argument)
            case ast.IfExp(body=body, orelse=orelse):
                self.changes(body)
                self.changes(orelse)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.changes(part)
            case _ if not isinstance(node, _NEW):
                self.unknown = True

    def _name(self, name: str) -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        bound = self._bound.get(name, [])
        if name == self._me:
            self.unknown = True
        elif name in self._given:
            self.parameters.add(name)
        elif not bound:
            self.unknown = True
        for value in bound:
            if value is None:
                self.unknown = True
            else:
                self.changes(value)


def arguments_for(call: ast.Call, called: FunctionInfo, owner: ClassInfo | None, changed: Changed) -> list[ast.expr]:
    """What of the arguments of a call the function may change, as far as that has a name."""
    names = [p.arg for p in called.parameters][owner is not None :]
    by_place = [*zip(names, call.args, strict=False), *((k.arg or "", k.value) for k in call.keywords)]
    starred = any(isinstance(a, ast.Starred) for a in call.args) or any(not k.arg for k in call.keywords)
    if changed.unknown or (changed.parameters and (starred or len(call.args) > len(names))):
        return [*call.args, *(k.value for k in call.keywords)]
    return [argument for name, argument in by_place if name in changed.parameters]


def _called(
    info: FunctionInfo, owner: ClassInfo | None, call: ast.Call
) -> Iterator[tuple[FunctionInfo, ClassInfo | None]]:
    """The function of the file, or the method of the same object, that a call runs."""
    me = info.parameters[0].arg if owner is not None and info.parameters else None
    match call.func:
        case ast.Name(id=name) if name in info.module.functions:
            yield info.module.functions[name], None
        case ast.Attribute(value=ast.Name(id=of), attr=attr) if owner is not None and of == me:
            method = next((cls.methods[attr] for cls in mro(owner) if attr in cls.methods), None)
            if method is not None:
                yield method, None if method.is_static else owner


def _makes_tuple(value: ast.expr) -> bool:
    match value:
        case ast.IfExp(body=body, orelse=orelse):
            return _makes_tuple(body) and _makes_tuple(orelse)
    return isinstance(value, (ast.Tuple, ast.Constant, ast.BinOp))  # what is added to one is a new one


def makes_tensor(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in MAKERS


def _own_stores(body: object) -> Iterator[ast.AST]:
    """The stores at the top of a function into what a name was bound to there, by what makes a tensor."""
    made: set[str] = set()
    statements: Iterable[ast.stmt] = body if isinstance(body, list) else ()
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                (made.add if makes_tensor(value) else made.discard)(name)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name)) as target]) if name in made:
                yield target
            case _:
                yield from (n for n in nodes_in(statement) if _stores_into(n, made - writes(statement)))
                made -= writes(statement)


def _stores_into(node: ast.AST, made: set[str]) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in made
