"""Places that a branch stores to, which may have names of the function while it runs."""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Tensor, options
from graphmend.analysis.program.entities import Class, Function, Instance, Record
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import parameters, stored, writes
from graphmend.transforms.code.qualified_names import asks_for_none, qualified
from graphmend.transforms.legality.effects import effects, is_layer
from graphmend.transforms.legality.memory import may_share
from graphmend.transforms.legality.objects.plain_fields import is_plain_field
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.writes.changes import changes

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: a field of an object, or a name of an outer function or of the module
Place = ast.Attribute | ast.Name
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Assert, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await)
#: what is more than a plain step: it has names of its own, runs through something, or is left
_MORE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Try, ast.With, ast.AsyncWith),
    *(ast.For, ast.AsyncFor, ast.While, ast.Match, ast.comprehension, ast.JoinedStr, ast.NamedExpr, ast.Starred),
)
_ITERATORS = ("generator", "iterator")
#: functions of Python that look at no object's fields where they are given tensors and numbers
_BUILTINS = frozenset("len int float bool abs min max round".split())
_BINDS = (ast.Assign, ast.AnnAssign)


def stored_places(facts: FunctionFacts, statement: ast.If) -> list[Place]:
    """The fields and outer names that the sides of a branch store to, in the order of the text."""
    outer = {n for s in nodes_in(facts.function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    nodes = [n for s in (*statement.body, *statement.orelse) for n in nodes_in(s)]
    targets = [n for n in nodes if isinstance(n, Place) and isinstance(n.ctx, ast.Store)]
    return [n for n in targets if isinstance(n, ast.Attribute) or n.id in outer]


def why_not_named(facts: FunctionFacts, statement: ast.If, places: Sequence[Place]) -> str | None:
    """Why the places that a branch stores to may not have names while it runs: they may be others, or not there, or
    something may look at them meanwhile, or later tell a copy from what they hold.
    """
    sides = [*statement.body, *statement.orelse]
    nodes = [n for s in sides for n in nodes_in(s)]
    if left := next((n for n in nodes if isinstance(n, (*_LEAVES, *_MORE))), None):
        return f"`{shortened(left)}` is more than a step of the branch"
    return _where(facts, writes(*sides), places) or _later(facts, places) or _meanwhile(facts, statement, nodes, places)


def _where(facts: FunctionFacts, bound: Set[str], places: Sequence[Place]) -> str | None:
    """Why a place may be another one, or not be there. The branch has `bound` these names."""
    texts = {ast.unparse(place) for place in places}
    attributes = {ast.unparse(place): place for place in places if isinstance(place, ast.Attribute)}
    if unbound := next((p for p in places if isinstance(p, ast.Name) and not _is_bound_before(facts, p.id)), None):
        return f"`{unbound.id}` may not be bound yet"
    for text, place in attributes.items():
        owners = {ast.unparse(n) for n in nodes_in(place.value)}
        if not _is_path(place.value) or owners & (bound | texts):
            return f"`{text}` may be a field of several objects"
        if sum(other.attr == place.attr for other in attributes.values()) > 1:
            return f"`{text}` may be stored to under two names"
        if not is_plain_field(place.attr, facts.function, *options(facts.value(place.value))):
            return f"`{text}` is not known to be a field of an object, and nothing else"
    return None


def _later(facts: FunctionFacts, places: Sequence[Place]) -> str | None:
    """Why a copy of what a place holds may be told from it."""
    for place in places:
        above = facts.parent(place)
        kept = [facts.value(place), *([facts.value(above.value)] if isinstance(above, ast.Assign) else [])]
        if any(isinstance(o, Container) and o.kind != "tuple" for value in kept for o in options(value)):
            return f"`{ast.unparse(place)}` may hold a list, which would be another one"
    if changed := _changed_elsewhere(facts, places):
        return f"`{changed}` is changed in place, and may be what the branch keeps"
    if asked := _asked_for(facts, {_name_of(place) for place in places}):
        return f"which object `{asked}` is asked for, and it would be a copy"
    return None


def _meanwhile(
    facts: FunctionFacts, statement: ast.If, nodes: Sequence[ast.AST], places: Sequence[Place]
) -> str | None:
    """What in a branch, or among the `nodes` of its sides, may look at a place."""
    texts = {ast.unparse(place) for place in places}
    fields = {place.attr for place in places if isinstance(place, ast.Attribute)}
    for node in nodes_in(statement):
        if isinstance(node, ast.Attribute) and node.attr in fields and ast.unparse(node) not in texts:
            return f"`{ast.unparse(node)}` may be the field of the same object"
    looking = next((n for n in nodes if isinstance(n, ast.expr) and _may_look(facts, n)), None)
    return f"`{shortened(looking)}` may look at what the branch stores" if looking is not None else None


def _changed_elsewhere(facts: FunctionFacts, places: Sequence[Place]) -> str | None:
    """A tensor that this function or one that calls it changes in place, and that may be what a place holds."""
    for _, target in changes(facts):
        if any(may_share(facts, target, place) for place in places):
            return ast.unparse(target)
    names = {_name_of(place) for place in places}
    for node in nodes_in(facts.source.tree) if facts.source.tree is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(value=target, attr=method)):
                changes_it = method.endswith("_") and not method.startswith("_")
            case ast.Subscript(value=target, ctx=ast.Store()):
                changes_it = True
            case _:
                continue
        if changes_it and isinstance(target, Place) and _name_of(target) in names:
            return ast.unparse(target)
    return next((ast.unparse(target) for caller in facts.calls() for _, target in changes(caller)), None)


def _name_of(place: Place) -> str:
    return place.attr if isinstance(place, ast.Attribute) else place.id


def _asked_for(facts: FunctionFacts, names: Set[str]) -> str | None:
    """A place of such a name of which the file asks whether it is one and the same object as another."""
    for node in nodes_in(facts.source.tree) if facts.source.tree is not None else ():
        match node:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[right]) if not asks_for_none(node):
                asked: Sequence[ast.expr] = [left, right]
            case ast.Call(func=ast.Name(id="id"), args=args):
                asked = args
            case _:
                continue
        if found := next((n for n in asked if isinstance(n, Place) and _name_of(n) in names), None):
            return ast.unparse(found)
    return None


def _is_bound_before(facts: FunctionFacts, name: str) -> bool:
    """Is a name of an outer scope bound there before the function is defined, and never deleted?"""
    tree = facts.source.tree
    if tree is None or any(_unbinds(n, name) for n in nodes_in(tree)):
        return False
    scopes = [n for n in nodes_in(tree) if isinstance(n, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef))]
    for scope in scopes:
        if facts.function in scope.body:
            front = scope.body[: scope.body.index(facts.function)]
            given = parameters(scope) if not isinstance(scope, ast.Module) else ()
            return name in given or any(isinstance(s, _BINDS) and name in stored([s]) for s in front)
    return False


def _unbinds(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Name(id=found, ctx=ast.Del()) | ast.ExceptHandler(name=found):
            return found == name
        case ast.Name(id="globals" | "vars" | "exec" | "delattr"):
            return True
    return False


def _is_path(owner: ast.expr) -> bool:
    """Is an object that of a name, or a field of such?"""
    while isinstance(owner, ast.Attribute):
        owner = owner.value
    return isinstance(owner, ast.Name)


def _may_look(facts: FunctionFacts, node: ast.expr) -> bool:
    """May evaluating a part of an expression look at fields of objects, or at names of outer functions?"""
    above, found = facts.parent(node), [*options(facts.value(node))]
    inside = isinstance(above, ast.Attribute) or (isinstance(above, ast.Call) and above.func is node)
    match node:
        case ast.Attribute(value=owner, attr=attr, ctx=ast.Load()) if not inside:
            owners = [*options(facts.value(owner))]
            if any(isinstance(o, (Instance, Record)) for o in owners):
                if not is_plain_field(attr, facts.function, *owners):
                    return True
            elif qualified(facts, node) is None and not all(isinstance(o, Tensor) for o in owners):
                return True
        case ast.Call(func=function):
            if isinstance(facts.value(function), ExternalInstance):
                return not is_layer(facts, function) or bool(effects(facts, node))
            folder, _, last = (qualified(facts, function) or "").rpartition(".")
            if folder not in (*known.FUNCTIONAL, "math") and not (folder == "builtins" and last in _BUILTINS):
                return True
    objects = (Instance, Record, Function, Class)
    runs = any(isinstance(o, objects) or (isinstance(o, Container) and o.kind in _ITERATORS) for o in found)
    return runs and not inside and not isinstance(getattr(node, "ctx", None), ast.Store)
