"""What the callers in sight do with the tensor that a function gives: one that they change in place, or whose memory
they change behind the call, is told from a copy of it.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bound_before
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@answers("memory")
def written_by_callers(facts: FunctionFacts) -> str | None:
    """What a caller changes in place that the function gave it, or may have given it a part of."""
    return _written(facts)


@lru_cache(maxsize=2)
def _written(facts: FunctionFacts) -> str | None:
    seen, waiting = {facts.function}, [facts]
    while waiting:
        called = waiting.pop()
        if (target := _in_lambda(called)) is not None:
            return shortened(target)
        read = {n.attr for n in nodes_in(called.function) if isinstance(n, ast.Attribute)}
        for caller in called.calls():
            if (target := _changed(caller, read)) is not None:
                return shortened(target)
            if caller.function not in seen and _hands_on(caller):
                seen.add(caller.function)
                waiting.append(caller)
    return None


def _in_lambda(called: FunctionFacts) -> ast.expr | None:
    """What a lambda that names the function changes in place: no facts are known of such a caller."""
    tree, name = called.source.tree, called.function.name
    for one in nodes_in(tree) if tree is not None else ():
        inside = [*nodes_in(one.body)] if isinstance(one, ast.Lambda) else []
        if any(name in (getattr(n, "id", None), getattr(n, "attr", None)) for n in inside):
            for node in inside:
                match node:
                    case ast.Call(func=ast.Attribute(value=target, attr=attr)) if attr.endswith(
                        "_"
                    ) and not attr.endswith("__"):
                        return target
                    case ast.keyword(arg="out", value=target):
                        return target
    return None


def _changed(caller: FunctionFacts, read: set[str]) -> ast.expr | None:
    """What a caller changes in place at the call or behind it: what it got there, an argument, or an attribute that the
    function reads.
    """
    call = caller.node
    arguments = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    paths = frozenset[str]().union(*(shares(caller, n).paths for n in (call, *arguments) if isinstance(n, ast.expr)))
    inside = {*nodes_in(call)}
    for change, target in changes(caller, caller.statement):
        if change in inside or _is_new_there(caller, change, target):
            continue
        there = shares(caller, target).paths
        if paths & there or any(name.rpartition(".")[2] in read for name in there if "." in name):
            return target
    return None


def _is_new_there(caller: FunctionFacts, change: ast.stmt | ast.expr, target: ast.expr) -> bool:
    """Is what is changed by a name new, as the name was bound last in front of the change?"""
    statement = next((n for n in (change, *caller.ancestors(change)) if isinstance(n, ast.stmt)), None)
    if statement is None or not isinstance(target, ast.Name) or statement is caller.statement:
        return False
    bound = bound_before(caller, statement, target.id)
    return bound is not None and shares(caller, bound).fresh


def _hands_on(caller: FunctionFacts) -> bool:
    """May a caller return what it got?"""
    paths = shares(caller, caller.node).paths if isinstance(caller.node, ast.expr) else frozenset()
    values = (n.value for n in nodes_in(caller.function) if isinstance(n, ast.Return) and n.value is not None)
    return any(caller.node in nodes_in(value) or paths & shares(caller, value).paths for value in values)
