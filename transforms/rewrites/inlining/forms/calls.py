"""Calls of functions of the file whose bodies may stand in their places."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import UNKNOWN, Container, Tensor, options
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import locals_of, parameters, stored, surely_bound
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.bodies import methods
from graphmend.transforms.legality.context import reading_names
from graphmend.transforms.legality.effects import is_layer, runs_code
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.outside.pure_bodies import only_computes
from graphmend.transforms.legality.own_functions import (
    computes,
    is_still_named,
    is_the_one,
    makes_record,
    runs_own_method,
)
from graphmend.transforms.questions import take_for_granted

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

LONGEST, _MOST_CALLS = 12, 3
_OWN_NAMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
#: what gives names that are no expressions, leaves early, or may not be evaluated
NOT_PLAIN = (
    *(*_OWN_NAMES, ast.Match, ast.Try, ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Delete),
    *(ast.YieldFrom, ast.Await),
)
#: what means something else in another function
_OF_ITS_PLACE = frozenset({"super", "locals", "globals", "vars", "dir", "eval", "exec", "__class__"})


#: what makes another function of one
_OF_CODE = frozenset("__code__ __defaults__ __kwdefaults__".split())


#: methods of what holds data; none looks at who calls it
_OF_DATA = methods.TENSOR_METHODS | methods.CHANGE | {n for kind in (str, list, dict, set, tuple) for n in dir(kind)}


class NotInlinedError(Exception):
    """A body cannot stand in the place of a call; the message is the sentence to refuse with."""


class Call(NamedTuple):
    """A call, with the facts where it stands and what is called."""

    facts: FunctionFacts
    node: ast.Call
    function: Function
    definition: ast.FunctionDef


def calls_of(facts: FunctionFacts) -> list[Call]:
    """All calls in traced code of the function that the finding stands in."""
    found: list[Call] = []
    for caller in facts.calls():
        call = called(caller, caller.node) if isinstance(caller.node, ast.Call) else None
        if call is None or call.definition is not facts.function or caller.source is not facts.source:
            return []
        found.append(call)
    if len(found) > _MOST_CALLS:
        raise NotInlinedError(f"`{facts.function.name}` is called at more places")
    return found


def called(facts: FunctionFacts, node: ast.Call) -> Call | None:
    """A call of a function, or of a method, of the file that is known for certain."""
    function = facts.value(node.func)
    if not isinstance(function, Function) or function.info.module.source.path != facts.source.path:
        return None
    definition = function.info.node
    if not isinstance(definition, ast.FunctionDef) or definition is facts.function or definition.decorator_list:
        return None
    if not is_still_named(facts, node.func):
        return None
    if function.bound is not None:
        plain = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name)
        if not plain or not is_the_one(function, facts.source.tree):
            return None
        take_for_granted(f"`{ast.unparse(node.func)}` is taken to be the method in sight, overridden nowhere else")
    elif not isinstance(node.func, ast.Name):
        return None
    return Call(facts, node, function, definition)


def body_of(definition: ast.FunctionDef) -> list[ast.stmt]:
    first = definition.body[0]
    docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(definition.body) > 1
    return definition.body[1:] if docstring else definition.body


def check(call: Call, statement: ast.stmt) -> None:
    """May the body stand with its names, and by what it calls, where the statement with the call stands?"""
    facts, definition = call.facts, call.definition
    name = definition.name
    nodes = [n for step in body_of(definition) for n in nodes_in(step)]
    if any(isinstance(n, ast.Name) and n.id == name for n in nodes) or _in_texts(definition, nodes):
        raise NotInlinedError(f"`{name}` calls itself, or writes names into texts")
    if any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in nodes_in(call.node)):
        raise NotInlinedError(f"an argument of `{name}` binds a name")
    own = {*locals_of(definition), *parameters(definition)}
    free = {n.id for n in nodes if isinstance(n, ast.Name)} - own
    said = {n.attr if isinstance(n, ast.Attribute) else n.id for n in nodes if isinstance(n, (ast.Attribute, ast.Name))}
    private = {n for n in said if n.startswith("__") and n[-2:] != "__"}
    if private or free & _OF_ITS_PLACE:
        raise NotInlinedError(f"`{name}` says what means something else where it is called")
    if taken := free & {*locals_of(facts.function), *parameters(facts.function)}:
        raise NotInlinedError(f"`{min(taken)}` is another name where `{name}` is called")
    tree = facts.source.tree
    assert tree is not None
    outer: list[ast.Module | ast.ClassDef] = [tree, *(n for n in tree.body if isinstance(n, ast.ClassDef))]
    if not all(any(f in scope.body for scope in outer) for f in (facts.function, definition)):
        raise NotInlinedError(f"`{name}`, or who calls it, is defined inside a function")
    if not begins_line(facts.source, statement):
        raise NotInlinedError("the statement shares its line with another one")
    if (reader := reading_names(facts)) is not None:
        raise NotInlinedError(f"`{reader}` sees the names of the function that calls `{name}`")
    if any(
        isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) and n.attr in _OF_CODE for n in nodes_in(tree)
    ):
        raise NotInlinedError(f"the code or the defaults of `{name}` may be other ones")
    if (left := _left_over(facts.within(definition), definition)) is not None:
        raise NotInlinedError(f"`{left}` of `{name}` may not be bound where it is read")
    if (caller := _may_tell(facts.within(definition), nodes, only_computes(call.function.info))) is not None:
        raise NotInlinedError(f"`{shortened(caller)}` in `{name}` may tell which function runs")


def _may_tell(facts: FunctionFacts, nodes: list[ast.AST], computes_alone: bool) -> ast.expr | None:
    """What may look at the function that it stands in, such as what logs or warns: a record has its name."""
    for node in nodes:
        if isinstance(node, ast.expr) and (runs_own_method(facts, node) or _is_property(facts, node)):
            return node
        if isinstance(node, ast.Call) and not computes_alone:
            folder, _, last = (qualified(facts, node.func) or "").rpartition(".")
            torchs = folder in (*known.FUNCTIONAL, "math") or (folder == "builtins" and last not in _OF_ITS_PLACE)
            if torchs or is_layer(facts, node.func) or computes(facts, node) or makes_record(facts, node):
                continue
            if not _is_of_data(facts, node.func):
                return node.func
    return None


def _is_of_data(facts: FunctionFacts, function: ast.expr) -> bool:
    """Is it a method that tensors, lists, dictionaries or texts have, of something that may be one of them?"""
    if not isinstance(function, ast.Attribute) or qualified(facts, function) is not None:
        return False
    kinds = [*options(facts.value(function.value))]
    if function.attr not in _OF_DATA or not all(v == UNKNOWN or isinstance(v, (Tensor, Container)) for v in kinds):
        return False
    take_for_granted(f"`{shortened(function)}` is taken to be that of a tensor, a container or a text")
    return True


def _is_property(facts: FunctionFacts, node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and runs_code(facts, node)


def _left_over(facts: FunctionFacts, definition: ast.FunctionDef) -> str | None:
    """A local name that may not be bound where it is read. Where the body is run again, it would be from before."""
    own = locals_of(definition) - {*parameters(definition)}
    for statement in (n for n in nodes_in(definition) if isinstance(n, ast.stmt) and n is not definition):
        bound: set[str] | None = None
        for node in (n for e in ast.iter_child_nodes(statement) if isinstance(e, ast.expr) for n in nodes_in(e)):
            if isinstance(node, ast.Name) and node.id in own and isinstance(node.ctx, ast.Load):
                bound = surely_bound(facts, statement) if bound is None else bound
                if node.id not in bound | stored([statement]):
                    return node.id
    return None


def _in_texts(definition: ast.FunctionDef, nodes: list[ast.AST]) -> bool:
    """Are names written into texts, or do texts span lines? Before Python 3.12 places in f-strings are not known."""
    own = {*locals_of(definition), *parameters(definition)}
    written = [n for text in nodes if isinstance(text, ast.JoinedStr) for n in nodes_in(text)]
    spans = [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and n.end_lineno != n.lineno]
    return bool(spans) or any(isinstance(n, ast.Name) and n.id in own for n in written)
