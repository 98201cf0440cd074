"""Let a branch bind local names for the fields of objects, and for the names of outer functions and of the module, that
it stores to, and store these behind it.

Before:
    if loss < self.best:
        self.best = loss

After:
    held_best = self.best
    if loss < held_best:
        held_best = loss
    self.best = held_best

Legal when:
    the objects are of classes in sight whose `__init__` gives them these fields, and which run no code where a field is
    read or stored; outer names are bound before the function is called. The branch leaves nothing early, and between
    its stores nothing runs that may look at the objects or names: it calls torch's functions and Python's own. No other
    object's field of the same name is in it.

Differs in:
    what was stored before something in the branch raises stays as it was. It is written for the mends that
    select values of names, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Tensor, options
from graphmend.analysis.program.entities import Class, Function, Instance, Record
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import HELD
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import fresh, parameters, stored, writes
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.qualified_names import asks_for_none, qualified
from graphmend.transforms.code.text_edits import insert_after, insert_before, merged_edit, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.branch_statement import branch
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.effects import effects, is_layer
from graphmend.transforms.legality.memory import may_share
from graphmend.transforms.legality.objects.plain_fields import is_plain_field
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "named_fields"
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Assert, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await)
#: what is more than a plain step: it has names of its own, runs through something, or is left
_MORE = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Try, ast.With, ast.AsyncWith),
    *(ast.For, ast.AsyncFor, ast.While, ast.Match, ast.comprehension, ast.JoinedStr, ast.NamedExpr, ast.Starred),
)
_ITERATORS = ("generator", "iterator")
#: functions of Python that look at no object's fields where they are given tensors and numbers
_BUILTINS = frozenset("len int float bool abs min max round".split())


Target = (ast.Attribute, ast.Name)


_BINDS = (ast.Assign, ast.AnnAssign)


class NotNamedError(Exception):
    """The fields stay where they are; the message is the sentence to refuse with."""


@asks("effects", "memory", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = branch(facts)
    if statement is None or not depends(facts, statement.test):
        return None
    targets = _stored(statement, _outer(facts))
    if not targets:
        return None
    try:
        _check(facts, statement, targets)
    except NotNamedError as error:
        return refuse(NAME, str(error))
    taken, names = list[str](), dict[str, str]()
    for target in targets:
        if (place := ast.unparse(target)) not in names:
            name = target.attr if isinstance(target, ast.Attribute) else target.id
            names[place] = fresh(facts, f"{HELD}{name}", taken)
            taken.append(names[place])
    said = ", ".join(f"`{place}`" for place in names)
    last = all(_stores_last(side) for side in (statement.body, statement.orelse))
    differences = [] if last else [Difference("exception", f"where the branch raises, {said} stays as it was")]

    def make() -> list[TextEdit]:
        source = facts.source
        read = "".join(f"{name} = {place}\n" for place, name in names.items())
        written = "".join(f"{place} = {name}\n" for place, name in names.items())
        fields = [n for n in nodes_in(statement) if isinstance(n, Target) and ast.unparse(n) in names]
        inside = [replace_expression(source, n, names[ast.unparse(n)]) for n in fields]
        whole = [insert_before(source, statement, read), *inside, insert_after(source, statement, written)]
        return [merged_edit(source, statement, whole)]

    return prepare(NAME, f"name {said} in the branch", facts, make, differences)


def _stores_last(side: Sequence[ast.stmt]) -> bool:
    """Is the one store of a side the last that it does?"""
    *front, last = side or [ast.Pass()]
    targets = [n for s in front for n in nodes_in(s) if isinstance(n, Target) and isinstance(n.ctx, ast.Store)]
    if targets:
        return False
    if isinstance(last, ast.If):
        return _stores_last(last.body) and _stores_last(last.orelse)
    return not (isinstance(last, ast.Assign) and (len(last.targets) > 1 or isinstance(last.targets[0], ast.Tuple)))


def _sides(statement: ast.If) -> list[ast.stmt]:
    return [*statement.body, *statement.orelse]


def _outer(facts: FunctionFacts) -> set[str]:
    """The names of outer functions and of the module that the function binds."""
    return {n for s in nodes_in(facts.function) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}


def _stored(statement: ast.If, outer: Set[str]) -> list[ast.Attribute | ast.Name]:
    """The fields and `outer` names that the sides of a branch store to, in the order of the text."""
    nodes = (
        n for s in _sides(statement) for n in nodes_in(s) if isinstance(n, Target) and isinstance(n.ctx, ast.Store)
    )
    return [n for n in nodes if isinstance(n, ast.Attribute) or n.id in outer]


def _check(facts: FunctionFacts, statement: ast.If, stored: Sequence[ast.Attribute | ast.Name]) -> None:
    """May the fields have names while the branch runs?"""
    sides = _sides(statement)
    nodes = [n for s in sides for n in nodes_in(s)]
    if left := next((n for n in nodes if isinstance(n, (*_LEAVES, *_MORE))), None):
        raise NotNamedError(f"`{shortened(left)}` is more than a step of the branch")
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        raise NotNamedError("the statement shares its line with another one")
    if not begins_line(facts.source, statement):
        raise NotNamedError("the statement shares its line with another one")
    if found := effects_of_test(facts, statement.test):
        raise NotNamedError(found[0])
    bound, places = writes(*sides), {ast.unparse(target): target for target in stored}
    if unbound := next((t for t in stored if isinstance(t, ast.Name) and not _is_bound_before(facts, t.id)), None):
        raise NotNamedError(f"`{unbound.id}` may not be bound yet")
    attributes = [t for t in places.values() if isinstance(t, ast.Attribute)]
    for target in attributes:
        place = ast.unparse(target)
        owners = {ast.unparse(n) for n in nodes_in(target.value)}
        if not _is_path(target.value) or owners & (bound | places.keys()):
            raise NotNamedError(f"`{place}` may be a field of several objects")
        if sum(other.attr == target.attr for other in attributes) > 1:
            raise NotNamedError(f"`{place}` may be stored to under two names")
        if not is_plain_field(target.attr, facts.function, *options(facts.value(target.value))):
            raise NotNamedError(f"`{place}` is not known to be a field of an object, and nothing else")
    for one in stored:
        above = facts.parent(one)
        kept = [facts.value(one), *([facts.value(above.value)] if isinstance(above, ast.Assign) else [])]
        if any(isinstance(o, Container) and o.kind != "tuple" for value in kept for o in options(value)):
            raise NotNamedError(f"`{ast.unparse(one)}` may hold a list, which would be another one")
    if changed := _changed_elsewhere(facts, stored):
        raise NotNamedError(f"`{changed}` is changed in place, and may be what the branch keeps")
    fields = {target.attr for target in attributes}
    if asked := _asked_for(facts, fields):
        raise NotNamedError(f"which object `{asked}` is asked for, and it would be a copy")
    for node in nodes_in(statement):
        if isinstance(node, ast.Attribute) and node.attr in fields and ast.unparse(node) not in places:
            raise NotNamedError(f"`{ast.unparse(node)}` may be the field of the same object")
    for node in nodes:
        if isinstance(node, ast.expr) and _may_look(facts, node):
            raise NotNamedError(f"`{shortened(node)}` may look at what the branch stores")


def _changed_elsewhere(facts: FunctionFacts, stored: Sequence[ast.Attribute | ast.Name]) -> str | None:
    """A tensor that this function or one that calls it changes in place, and that may be what a place holds."""
    for _, target in changes(facts):
        if any(may_share(facts, target, place) for place in stored):
            return ast.unparse(target)
    fields = {place.attr for place in stored if isinstance(place, ast.Attribute)}
    for node in nodes_in(facts.source.tree) if facts.source.tree is not None else ():
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr=attr) as target, attr=method)):
                named = attr in fields and method.endswith("_") and not method.startswith("_")
            case ast.Subscript(value=ast.Attribute(attr=attr) as target, ctx=ast.Store()):
                named = attr in fields
            case _:
                continue
        if named:
            return ast.unparse(target)
    return next((ast.unparse(target) for caller in facts.calls() for _, target in changes(caller)), None)


def _asked_for(facts: FunctionFacts, fields: Set[str]) -> str | None:
    """A field of such a name of which the file asks whether it is one and the same object as another."""
    for node in nodes_in(facts.source.tree) if facts.source.tree is not None else ():
        match node:
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot()], comparators=[right]) if not asks_for_none(node):
                asked: Sequence[ast.expr] = [left, right]
            case ast.Call(func=ast.Name(id="id"), args=args):
                asked = args
            case _:
                continue
        if found := next((n for n in asked if isinstance(n, ast.Attribute) and n.attr in fields), None):
            return ast.unparse(found)
    return None


def _is_bound_before(facts: FunctionFacts, name: str) -> bool:
    """Is a name of an outer scope bound there before the function is defined, and never deleted?"""
    tree = facts.source.tree
    if tree is None or any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Del) for n in nodes_in(tree)
    ):
        return False
    scopes = [n for n in nodes_in(tree) if isinstance(n, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef))]
    for scope in scopes:
        if facts.function in scope.body:
            front = scope.body[: scope.body.index(facts.function)]
            given = parameters(scope) if not isinstance(scope, ast.Module) else ()
            return name in given or any(isinstance(s, _BINDS) and name in stored([s]) for s in front)
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
