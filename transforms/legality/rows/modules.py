"""What calling a module does: only compute, and row by row? Layers of torch are known by name, containers by what they
hold, and modules whose source is in reach by the code of their `forward`.

Hooks are looked for in the file; `torch.nn` layers that were changed from outside are not.
"""

from __future__ import annotations

import ast
from functools import lru_cache

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Value, options
from graphmend.analysis.program.definitions import ClassInfo, ModuleInfo
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import bindings
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.operations import flags, rowwise
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.rows.kinds import UNKNOWN_CALL, Does, Kind, Kinds, has_rows, join

_DEEPEST = 6
#: what has a function run wherever a module, or any module, is called; `spectral_norm` changes a buffer then
_REGISTER_HOOKS = (
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_full_backward_hook",
    "register_full_backward_pre_hook",
    "register_hook",
    "register_parametrization",
    "spectral_norm",
    "_forward_hooks",
    "_forward_pre_hooks",
)


@lru_cache(maxsize=8)
def has_hooks(tree: ast.AST | None) -> bool:
    """Does a file give modules hooks, which see what these are given and what they give, and may keep or change it?"""
    for node in nodes_in(tree) if tree is not None else ():
        if isinstance(node, ast.alias):
            if node.name.rpartition(".")[2] in _REGISTER_HOOKS:
                return True
        elif isinstance(node, (ast.Attribute, ast.Name)) and _last(node) in _REGISTER_HOOKS:
            return True
    return False


def does(value: Value, tree: ast.AST | None, given: Kind = "rows", depth: int = 0) -> Does:
    """What calling a module does that is given `given` first. `tree` is the code in which its layers are made."""
    found = [_one(one, tree, given, depth) for one in options(value)]
    if not found or depth > _DEEPEST or has_hooks(tree):
        return UNKNOWN_CALL
    return Does(all(one.pure for one in found), join(*(one.kind for one in found)))


def _one(value: Value, tree: ast.AST | None, given: Kind, depth: int) -> Does:
    match value:
        case ExternalInstance(cls=cls):
            layer = cls.rpartition(".")[2]
            if cls not in known.LAYERS or tree is None or is_made_with_flags(tree, layer):
                return UNKNOWN_CALL
            if layer in rowwise.LAYERS_OF_EACH:
                return Does(True, given)
            return Does(True, "rows" if layer in rowwise.LAYERS_ALONG and has_rows(given) else "other")
        case Container(kind="modules", items=items) if items:
            pure = True
            for item in items:
                found = does(item, tree, given, depth + 1)
                pure, given = pure and found.pure, found.kind
            return Does(pure, given)
        case Instance(info=info):
            return _of_method(info, "forward", given, depth)
    return UNKNOWN_CALL


def does_method(function: Function, tree: ast.AST | None) -> Does:
    """What a method of a module does, by its code. Whether another one may stand in its place is not asked."""
    owner = function.bound
    if not isinstance(owner, Instance) or has_hooks(tree):
        return UNKNOWN_CALL
    return _of_method(owner.info, function.info.name, "other", 0)


def is_made_with_flags(tree: ast.AST, layer: str) -> bool:
    """Is a layer of this name anywhere made to work in place, or to change what it reads, as far as the text says?"""
    places = [("inplace", flags.LAYER_INPLACE.get(layer)), ("max_norm", flags.LAYER_MAX_NORM.get(layer))]
    for node in _calls(tree).get(layer, ()):
        for keyword, place in places:
            given = [k.value for k in node.keywords if k.arg == keyword]
            given += node.args[place : place + 1] if place is not None else []
            starred = any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args)
            if any(constant(g) not in (False, None) or not isinstance(g, ast.Constant) for g in given):
                return True
            if place is not None and starred:
                return True
    return False


@lru_cache(maxsize=8)
def _calls(tree: ast.AST) -> dict[str, list[ast.Call]]:
    """The calls of a file, by the last part of the name of what is called."""
    found: dict[str, list[ast.Call]] = {}
    for node in nodes_in(tree):
        if isinstance(node, ast.Call):
            found.setdefault(_last(node.func), []).append(node)
    return found


def _last(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@lru_cache(maxsize=64)
def is_only_one(method: str, tree: ast.AST | None) -> bool:
    """Is there one function of a name in a file, that nothing else is put in the place of? Other files may."""
    found = [*nodes_in(tree)] if tree is not None else []
    functions = [n for n in found if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == method]
    members = (bound for n in found if isinstance(n, ast.ClassDef) for s in n.body for bound in bindings(s))
    others = any(name == method and by not in functions for name, by in members)
    return len(functions) == 1 and not others and not any(_puts(n, method) for n in found)


def _puts(node: ast.AST, name: str) -> bool:
    """Does a node store an attribute of a name, or name it, as for `setattr`, `patch` or a namespace of `type`?"""
    match node:
        case ast.Attribute(attr=attr, ctx=ast.Store() | ast.Del()):
            return attr == name
        case ast.Constant(value=str() as text):
            return text.rpartition(".")[2] == name
        case ast.keyword(arg=arg):
            return arg == name
    return False


def _of_method(info: ClassInfo, name: str, given: Kind, depth: int) -> Does:
    owner = next((cls for cls in mro(info) if name in cls.methods), None)
    own = any({"__call__", "__getattr__", "__getattribute__"} & set(cls.methods) for cls in mro(info))
    method = owner.methods[name].node if owner is not None else None
    if own or owner is None or not isinstance(method, ast.FunctionDef) or method.decorator_list or depth > _DEEPEST:
        return UNKNOWN_CALL
    return _Method(info, owner.module, depth).of(method, given)


class _Method(Kinds):
    """The code of a module's `forward`, or of another method."""

    def __init__(self, info: ClassInfo, module: ModuleInfo, depth: int) -> None:
        super().__init__()
        self._info, self._module, self._depth = info, module, depth

    def of(self, method: ast.FunctionDef, given: Kind) -> Does:
        arguments = [*method.args.posonlyargs, *method.args.args]
        if len(arguments) < 2 or method.args.vararg or method.args.kwarg:
            return UNKNOWN_CALL
        self.bound = {a.arg: "const" for a in (*arguments, *method.args.kwonlyargs)}
        self.bound[arguments[1].arg] = given
        returned: list[Kind] = []
        for statement in method.body:
            if isinstance(statement, ast.Return) and statement.value is not None:
                returned.append(self.kind(statement.value))
            elif not self.binds(statement):
                return UNKNOWN_CALL
        return Does(self.pure, join(*returned) if len(returned) == 1 else "other")

    def leaf(self, node: ast.expr) -> Kind | None:
        match node:
            case ast.Name(id=name):
                return self.bound.get(name, "const")
            case ast.Attribute(value=ast.Name(id="self"), attr=attr) if self._has(attr):
                self.pure = False  # a property, or a method that is handed on
                return "other"
        return None

    def _has(self, name: str) -> bool:
        return any(name in cls.methods for cls in mro(self._info))

    def module(self, function: ast.expr, given: Kind) -> Does | None:
        match function:
            case ast.Attribute(value=ast.Name(id="self"), attr=attr) if self._has(attr):
                only = is_only_one(attr, self._module.source.tree)
                return _of_method(self._info, attr, given, self._depth + 1) if only else UNKNOWN_CALL
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                value = next((v for cls in mro(self._info) if (v := cls.attribute_cache.get(attr)) is not None), None)
                return does(value, self._module.source.tree, given, self._depth + 1) if value else UNKNOWN_CALL
        return None

    def qualified(self, function: ast.expr) -> str | None:
        if isinstance(function, ast.Name):
            return self._module.imports.get(function.id, f"builtins.{function.id}")
        if isinstance(function, ast.Attribute) and isinstance(inner := function.value, (ast.Name, ast.Attribute)):
            if isinstance(inner, ast.Name) and inner.id not in self._module.imports:
                return None
            above = self.qualified(inner)
            return f"{above}.{function.attr}" if above else None
        return None
