"""Objects whose class is the one in sight that is called to make them, and the methods that it surely has."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo
from graphmend.analysis.program.entities import Class
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import locals_of, parameters, surely_bound, writes
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.legality.objects.classes import is_as_written
from graphmend.transforms.legality.objects.plain_fields import is_plain, is_reached

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def exact_class(facts: FunctionFacts, node: ast.expr) -> ClassInfo | None:
    """The class of an object that a call of it makes, in place or under a name that is bound once: no other class,
    whose methods nobody puts others in the place of.
    """
    made = _made(facts, node)
    if made is None or not isinstance(made.func, ast.Name):
        return None
    value = facts.value(made.func)
    here = {*locals_of(facts.function), *parameters(facts.function)}
    if not isinstance(value, Class) or made.func.id in here or not is_lasting(made.func.id, facts.source.tree):
        return None
    classes = mro(value.info)
    plain = all(is_plain(cls) and is_as_written(cls) for cls in classes) and not is_reached(value.info)
    return value.info if plain else None


def _made(facts: FunctionFacts, node: ast.expr) -> ast.Call | None:
    if isinstance(node, ast.Call):
        return node
    if not isinstance(node, ast.Name) or node.id in parameters(facts.function):
        return None
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) and node.id in n.names for n in nodes_in(facts.function)):
        return None
    if any(isinstance(n, ast.AugAssign) and ast.unparse(n.target) == node.id for n in nodes_in(facts.function)):
        return None
    bound = bindings(facts).get(node.id, [])
    if len(bound) == 1 and not bound[0].part and isinstance(bound[0].value, ast.Call):
        return bound[0].value if node.id in surely_bound(facts, node) else None
    tree = facts.source.tree
    if bound or tree is None or not is_lasting(node.id, tree):
        return None
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=node.id)], value=ast.Call() as call):
                return call
    return None


@lru_cache(maxsize=256)
def binds(info: ClassInfo, name: str) -> tuple[ClassInfo, ast.stmt] | None:
    """The only statement of a class, or of the first of its bases that has the name, by which its objects have a
    member; None where there is none, several, or something is put in its place.
    """
    tree = info.module.source.tree
    for node in nodes_in(tree) if tree is not None else ():
        if isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load):
            return None
        if isinstance(node, ast.Constant) and node.value == name:
            return None
    for cls in mro(info):
        found = [s for s in nodes_in(cls.node) if isinstance(s, ast.stmt) and s is not cls.node and name in writes(s)]
        own = [s for s in found if s in cls.node.body]
        if own:
            return (cls, own[0]) if len(own) == 1 else None
        if name in (cls.methods.keys() | cls.names.keys() | cls.classes.keys()):
            return None
    return None


def method_named(info: ClassInfo, name: str) -> FunctionInfo | None:
    """The undecorated method by that name that an object of exactly this class has."""
    found = binds(info, name)
    if found is None or not isinstance(found[1], ast.FunctionDef) or found[1].decorator_list:
        return None
    method = found[0].methods.get(name)
    return method if method is not None and method.node is found[1] else None


def has_any(info: ClassInfo, names: frozenset[str]) -> str | None:
    """A member by one of these names that a class has in any way."""
    for cls in mro(info):
        for name in names:
            if any(name in own for own in (cls.methods, cls.names, cls.classes, cls.setters, cls.assigned)):
                return name
    return None
