"""A side of a branch as a function: what it runs, which names it binds, and that it does nothing else."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.if_conversion.tensor_predicates import depends

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class NotAFunctionError(Exception):
    """A side that is no function of what it reads; the message says why."""


@dataclass
class Side:
    """One side: what it runs, and what it gives each result."""

    statements: list[ast.stmt]
    bound: dict[str, ast.expr]
    """The last value of each name that a plain assignment at the side's top binds."""
    simple: bool
    """Whether it is plain assignments of which none reads another one's name."""


def side_of(facts: FunctionFacts, statements: Sequence[ast.stmt]) -> Side:
    bound: dict[str, ast.expr] = {}
    simple = True
    seen: set[str] = set()
    kept = [s for s in statements if not isinstance(s, ast.Pass) and not _is_text(s)]
    for statement in kept:
        _only_binds(facts, statement)
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            simple = simple and name not in seen and not (reads(statement.value) & seen)
            seen.add(name)
            bound[name] = statement.value
        elif not isinstance(statement, ast.Return):
            simple = False
            for name in stored([statement]):
                bound.pop(name, None)
        else:
            simple = simple and not seen
    return Side(kept, bound, simple)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _only_binds(facts: FunctionFacts, statement: ast.stmt) -> None:
    """Raise where a statement does more than bind names or return."""
    match statement:
        case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name(), value=ast.expr()) | ast.Pass():
            return
        case ast.Assign(targets=[ast.Tuple(elts=targets)]) if all(isinstance(t, ast.Name) for t in targets):
            return
        case ast.AugAssign(target=ast.Name(id=name)):
            before = facts.before(statement).get(name)
            if not (isinstance(before, Static) and before.type in ("int", "float", "bool", "str", "complex")):
                raise NotAFunctionError(f"`{shortened(statement)}` may change an object in place")
            return
        case ast.Return(value=ast.expr()):
            return
        case ast.If():
            if depends(facts, statement.test):
                raise NotAFunctionError(f"`if {shortened(statement.test)}` inside the branch is mended first")
            for inner in (*statement.body, *statement.orelse):
                _only_binds(facts, inner)
            return
        case ast.FunctionDef(decorator_list=[], args=arguments) if not arguments.vararg and not arguments.kwarg:
            for inner in statement.body:  # a side that was made a function already
                _only_binds(facts, inner)
            return
        case ast.Expr(value=ast.Constant()):
            return
    raise NotAFunctionError(f"`{shortened(statement)}` does more than bind a name")


def evaluated_by(statements: Sequence[ast.stmt]) -> list[ast.expr]:
    """What statements evaluate."""
    found: list[ast.expr] = []
    for statement in statements:
        for node in ast.iter_child_nodes(statement):
            if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
                found.append(node)
            elif isinstance(node, ast.stmt):
                found += evaluated_by([node])
    return found


def always_binds(statements: Sequence[ast.stmt], name: str) -> bool:
    for statement in statements:
        if isinstance(statement, ast.If):
            if always_binds(statement.body, name) and always_binds(statement.orelse, name):
                return True
        elif name in stored([statement]):
            return True
    return False
