"""Let a branch bind local names for the fields of objects, and for the names of outer functions and of the module, that
it stores to, and store these behind it.

Before:
    if loss < self.best:
        self.best = loss

After:
    best = self.best
    if loss < best:
        best = loss
    self.best = best

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

from graphmend.analysis.lattice.values import options
from graphmend.analysis.program.entities import Instance, Record
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import fresh, parameters, stored, writes
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import insert_after, insert_before, merged_edit, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.branch_statement import branch
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.effects import effects, is_layer
from graphmend.transforms.legality.objects.plain_fields import is_plain_field
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "named_fields"
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Raise, ast.Delete, ast.Yield, ast.YieldFrom, ast.Await)
_OWN_NAMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Try, ast.With, ast.AsyncWith)
#: functions of Python that look at no object's fields where they are given tensors and numbers
_BUILTINS = frozenset("len int float bool abs min max round range enumerate zip sum tuple list".split())


Target = (ast.Attribute, ast.Name)


_BINDS = (ast.Assign, ast.AnnAssign)


class NotNamedError(Exception):
    """The fields stay where they are; the message is the sentence to refuse with."""


@asks("effects", "names", any_value=True)
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
            names[place] = fresh(facts, target.attr if isinstance(target, ast.Attribute) else target.id, taken)
            taken.append(names[place])
    said = ", ".join(f"`{place}`" for place in names)
    several = len(targets) > 1 or any(isinstance(n, ast.Call) for s in _sides(statement) for n in nodes_in(s))
    differences = [Difference("exception", f"where the branch raises, {said} stays as it was")] if several else []

    def make() -> list[TextEdit]:
        source = facts.source
        read = "".join(f"{name} = {place}\n" for place, name in names.items())
        written = "".join(f"{place} = {name}\n" for place, name in names.items())
        fields = [n for n in nodes_in(statement) if isinstance(n, Target) and ast.unparse(n) in names]
        inside = [replace_expression(source, n, names[ast.unparse(n)]) for n in fields]
        whole = [insert_before(source, statement, read), *inside, insert_after(source, statement, written)]
        return [merged_edit(source, statement, whole)]

    return prepare(NAME, f"name {said} in the branch", facts, make, differences)


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
    if left := next((n for n in nodes if isinstance(n, (*_LEAVES, *_OWN_NAMES))), None):
        raise NotNamedError(f"`{shortened(left)}` is more than a step of the branch")
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        raise NotNamedError("the statement shares its line with another one")
    if not begins_line(facts.source, statement):
        raise NotNamedError("the statement shares its line with another one")
    if found := effects_of_test(facts, statement.test):
        raise NotNamedError(found[0])
    bound = writes(*sides)
    places = {ast.unparse(target) for target in stored}
    if unbound := next((t for t in stored if isinstance(t, ast.Name) and not _is_bound_before(facts, t.id)), None):
        raise NotNamedError(f"`{unbound.id}` may not be bound yet")
    for target in (t for t in stored if isinstance(t, ast.Attribute)):
        if not is_plain_field(target.attr, *options(facts.value(target.value))):
            raise NotNamedError(f"`{ast.unparse(target)}` is not known to be a field of an object, and nothing else")
        if not _is_path(target.value) or any(isinstance(n, ast.Name) and n.id in bound for n in nodes_in(target.value)):
            raise NotNamedError(f"`{ast.unparse(target)}` may be a field of several objects")
    fields = {target.attr for target in stored if isinstance(target, ast.Attribute)}
    for node in nodes_in(statement):
        if isinstance(node, ast.Attribute) and node.attr in fields and ast.unparse(node) not in places:
            raise NotNamedError(f"`{ast.unparse(node)}` may be the field of the same object")
    for node in nodes:
        if isinstance(node, ast.Call) and not _looks_at_no_object(facts, node):
            raise NotNamedError(f"`{shortened(node.func)}` may look at the fields that the branch stores to")
        if isinstance(node, (ast.AugAssign, ast.BinOp, ast.Compare, ast.Subscript)) and _runs_methods(facts, node):
            raise NotNamedError(f"`{shortened(node)}` may look at the fields that the branch stores to")


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


def _looks_at_no_object(facts: FunctionFacts, call: ast.Call) -> bool:
    given = [*call.args, *(k.value for k in call.keywords)]
    if any(isinstance(o, (Instance, Record)) for a in given for o in options(facts.value(a))):
        return False
    if is_layer(facts, call.func):
        return not effects(facts, call)
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    return folder in (*known.FUNCTIONAL, "math") or (folder == "builtins" and last in _BUILTINS)


def _runs_methods(facts: FunctionFacts, node: ast.AST) -> bool:
    """Does an operator work on an object of the program?"""
    operands = [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.expr)]
    return any(isinstance(o, Instance) for n in operands for o in options(facts.value(n)))
