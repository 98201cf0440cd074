"""What the callers in sight do with the tensor that a function gives: one that they change in place, or whose memory
they change behind the call, is told from a copy of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.transforms.legality.effects import changes
from graphmend.transforms.legality.memory import changed_in_place, may_share
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
        read = {n.attr for n in ast.walk(called.function) if isinstance(n, ast.Attribute)}
        for caller in called.calls():
            names = {*_names(caller)}
            if isinstance(above := caller.parent(caller.node), ast.Attribute) and _is_in_place(caller, above):
                return ast.unparse(above)
            for name in sorted(names):
                if changed_in_place(caller, name, behind=caller.statement):
                    return name
            for change, target in changes(caller, caller.statement) if names or _returns(caller) else ():
                if change is not caller.statement and _is_given(caller, target, read):
                    return ast.unparse(target)
            handed_on = _returns(caller) or any(
                isinstance(n, ast.Return) and n.value is not None and names & {*_read(n.value)}
                for n in ast.walk(caller.function)
            )
            if handed_on and caller.function not in seen:
                seen.add(caller.function)
                waiting.append(caller)
    return None


def _names(caller: FunctionFacts) -> Iterator[str]:
    """The names that a caller gives to what it gets, or to the parts of it."""
    match caller.statement:
        case ast.Assign(targets=targets, value=value) if value is caller.node:
            for target in targets:
                yield from (n.id for n in ast.walk(target) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
        case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is caller.node:
            yield name


def _returns(caller: FunctionFacts) -> bool:
    return isinstance(caller.statement, ast.Return)


def _is_in_place(caller: FunctionFacts, method: ast.Attribute) -> bool:
    """`f(x).add_(1)`"""
    call = caller.parent(method)
    in_place = method.attr.endswith("_") and not method.attr.endswith("__")
    return isinstance(call, ast.Call) and call.func is method and in_place


def _is_given(caller: FunctionFacts, target: ast.expr, read: set[str]) -> bool:
    """Is what is changed an attribute of a name that the function reads, or may it be an argument of the call?"""
    if isinstance(target, ast.Attribute):
        return target.attr in read
    call = caller.node
    given = [*call.args, *(k.value for k in call.keywords)] if isinstance(call, ast.Call) else []
    return any(may_share(caller, argument, target) for argument in given)


def _read(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
