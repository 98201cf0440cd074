"""Numbers that say where something is in a tensor: which are picked and stay so, which a loop runs over, and which are
never below zero.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import Bound, bindings, stores
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import called, constant, method, qualified
from graphmend.transforms.legality.dtypes import kind
from graphmend.transforms.legality.memory import changed_in_place, given_away
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: an expression, the picks in it, and the names that are bound to it
Picked = tuple[ast.expr, Collection[ast.expr], Collection[str]]


@answers("domain")
def places(facts: FunctionFacts, bound: Collection[Picked]) -> set[ast.expr] | str:
    """The picks that say where something is: those that are not picked may hold what is no place, and count as 0. What
    is computed of them may be no place again: the text says so.
    """
    given: dict[str, list[Picked]] = {}
    for one in bound:
        for name in one[2]:
            given.setdefault(name, []).append(one)
    found: set[ast.expr] = set()
    for value, picks, _ in bound:
        inside = {n for pick in picks for n in nodes_in(pick)}  # what picks is no place
        for index in (i for node in nodes_in(value) if node not in inside for i in _indices_of(facts, node)):
            if not any(n in picks or (isinstance(n, ast.Name) and n.id in given) for n in nodes_in(index)):
                continue
            if (kept := _unchanged(index, picks, given, set())) is None:
                return f"`{ast.unparse(index)}` may be out of range where nothing is picked"
            found |= kept
    return found


def _indices_of(facts: FunctionFacts, node: ast.AST) -> list[ast.expr]:
    """What says where something is in a subscript or a call of `gather`."""
    if isinstance(node, ast.Subscript):
        return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if isinstance(node, ast.Call) and (qualified(facts, node.func) or "").endswith(".gather"):
        return [k.value for k in node.keywords if k.arg == "index"] or node.args[-1:]
    return []


#: methods that keep each number what it is
_KEEP = frozenset("long int to clone detach unsqueeze view reshape".split())


def _unchanged(
    node: ast.expr, picks: Collection[ast.expr], given: Mapping[str, list[Picked]], seen: set[str]
) -> set[ast.expr] | None:
    """The picks that a value is, cast or given other dimensions at most; None where more is computed."""
    while node not in picks:
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr=attr)) if attr in _KEEP:
                node = inner
            case ast.Subscript(value=inner, slice=index) if _adds_dimensions(index):
                node = inner
            case ast.Name(id=name) if name in seen:
                return set()
            case ast.Name(id=name) if name in given:
                parts = [_unchanged(value, inside, given, {*seen, name}) for value, inside, _ in given[name]]
                return None if None in parts else {n for part in parts if part is not None for n in part}
            case _:
                return None
    return {node}


def _adds_dimensions(index: ast.expr) -> bool:
    """Does an index take everything, and add dimensions?"""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(p, ast.Constant) and p.value in (None, ...))
        or (isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None)
        for p in parts
    )


@answers("domain")
def all_different(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a line of places made so that none comes twice: by sorting, or as a permutation?"""
    match node:
        case ast.Name(id=name):
            bound = _always(facts, name)
            if bound is None or bound.value is None:
                return False
            if not bound.part:
                return all_different(facts, bound.value)
            return _sorts(facts, bound.value) and _is_last_target(facts, bound.value, name)
        case ast.Attribute(value=of, attr="indices") | ast.Subscript(value=of, slice=ast.Constant(value=1)):
            return _sorts(facts, of)
        case ast.Call(func=ast.Attribute(value=of, attr="clone" | "long" | "flip")):
            return all_different(facts, of)
        case ast.Call():
            name = (qualified(facts, node.func) or "").rpartition(".")[2]
            return name in ("argsort", "randperm") and _is_torch(facts, node)
    return False


def _always(facts: FunctionFacts, name: str) -> Bound | None:
    """What a name is bound to for the whole function, if nothing changes that in place or may keep it to do so."""
    bound = bindings(facts).get(name, [])
    if len(bound) != 1 or stores(facts, name) != 1 or name in parameters(facts.function):
        return None
    return None if changed_in_place(facts, name) or given_away(facts, name) else bound[0]


def _sorts(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a call give values and their places?"""
    name = (qualified(facts, node.func) or "").rpartition(".")[2] if isinstance(node, ast.Call) else ""
    return name in ("sort", "topk") and isinstance(node, ast.Call) and _is_torch(facts, node)


def _is_torch(facts: FunctionFacts, call: ast.Call) -> bool:
    return (qualified(facts, call.func) or "").rpartition(".")[0] in ("torch", "torch.Tensor")


def _is_last_target(facts: FunctionFacts, value: ast.expr, name: str) -> bool:
    match facts.parent(value):
        case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id=last)])]):
            return last == name
    return False


def different_values(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """The tensor whose different values, each once and in order, an expression runs over."""
    if (listed := method(facts, node, "tolist")) is not None and isinstance(listed.func, ast.Attribute):
        node = listed.func.value
    match node:
        case ast.Call(func=ast.Attribute(value=value), args=[], keywords=[]) if method(facts, node, "unique"):
            return value
        case ast.Call(args=[value], keywords=[]) if called(facts, node, "torch.unique"):
            return value
    return None


_SAME_NUMBERS = frozenset({"item", "clone", "long", "detach", "flatten", "view", "reshape"})


@answers("domain")
def not_negative(facts: FunctionFacts, bound: ast.expr) -> bool:
    """Is a bound never below zero: a count, a place, or a number that is written out?"""
    match bound:
        case ast.Name(id=name):
            one = _always(facts, name)
            if one is None or one.value is None:
                return False
            if one.part:
                return _sorts(facts, one.value) and _is_last_target(facts, one.value, name)
            return not_negative(facts, one.value)
        case ast.Attribute(value=of, attr="indices"):
            return _sorts(facts, of)
        case ast.Call(keywords=keywords) if any(k.arg in ("dtype", "out") for k in keywords):
            return False
        case ast.Call(func=ast.Attribute(attr="argmax" | "argmin" | "argsort" | "count_nonzero" | "multinomial")):
            return _is_torch(facts, bound)
        case ast.Call(func=ast.Attribute(value=of, attr="sum")):
            return _is_torch(facts, bound) and kind(facts, of) == "bool"
        case ast.Call(func=ast.Attribute(value=of, attr=attr)) if attr in _SAME_NUMBERS:
            return not_negative(facts, of)
    return constant(bound) is not None
