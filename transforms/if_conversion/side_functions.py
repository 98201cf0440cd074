"""A side of a branch as a function: what it runs, which names it binds, and that it does nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Static, Tensor, Value, join_all, may_be_none
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.fix import Difference
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.memory import shares

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
    for number, statement in enumerate(kept):
        _only_binds(facts, statement, _made_here(facts, kept, number))
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            name = statement.targets[0].id
            simple = simple and name not in seen and not (reads(statement.value) & seen)
            seen.add(name)
            bound[name] = statement.value
        elif not isinstance(statement, ast.Return):
            simple = False
            for changed in stored([statement]) | {_filled(n) or "" for n in nodes_in(statement)}:
                bound.pop(changed, None)
        else:
            simple = simple and not seen
    return Side(kept, bound, simple)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _made_here(facts: FunctionFacts, statements: Sequence[ast.stmt], number: int) -> set[str]:
    """Names that in front of one of a side's statements stand for a tensor that the side has made, and for nothing
    else in it: what is stored in one is seen by nobody but the side, and what it gives.
    """
    new: set[str] = set()
    for statement in statements[:number]:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if _is_new(facts, value):
                new.add(name)
    assigned = [n for s in statements for n in nodes_in(s) if isinstance(n, ast.Assign)]
    plain = [t for n in assigned if _is_new(facts, n.value) for t in n.targets]
    every = [n for s in statements for n in nodes_in(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    augmented = [n.target for s in statements for n in nodes_in(s) if isinstance(n, ast.AugAssign)]
    return new - {n.id for n in every if n not in plain and n not in augmented}


def _is_new(facts: FunctionFacts, value: ast.expr) -> bool:
    return isinstance(facts.value(value), Tensor) and shares(facts, value).fresh


def _filled(node: ast.AST) -> str | None:
    """The name of what a statement stores items in."""
    match node:
        case (
            ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))])
            | ast.AugAssign(target=ast.Subscript(value=ast.Name(id=name)))
        ):
            return name
    return None


def may_not_hold(statements: Sequence[ast.stmt]) -> Iterator[Difference]:
    """What differs where a side that is not taken stores items: the place may not be there."""
    for node in (n for s in statements for n in nodes_in(s)):
        match node:
            case ast.Assign(targets=[ast.Tuple()], value=value):
                raises = not isinstance(value, ast.Tuple)
            case ast.stmt():
                raises = _filled(node) is not None
            case _:
                raises = False
        if raises:
            yield Difference("exception", f"while compiled, `{shortened(node)}` may raise where it did not run")


def _only_binds(facts: FunctionFacts, statement: ast.stmt, made: set[str]) -> None:
    """Raise where a statement does more than bind names, return, or change what the side has made."""
    if _filled(statement) in made:
        return
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
                _only_binds(facts, inner, made)
            return
        case ast.FunctionDef(decorator_list=[], args=arguments) if not arguments.vararg and not arguments.kwarg:
            for inner in statement.body:  # a side that was made a function already
                _only_binds(facts, inner, set())
            return
        case ast.Expr(value=ast.Constant()):
            return
    raise NotAFunctionError(f"`{shortened(statement)}` does more than bind a name")


def none_at_first(facts: FunctionFacts, statement: ast.stmt, one: Value, other: Value) -> bool:
    """Is one of two values None until a loop has bound it, in a branch that does not ask for that?"""
    asks = isinstance(statement, ast.If) and any(isinstance(n, (ast.Is, ast.IsNot)) for n in nodes_in(statement.test))
    looped = any(isinstance(a, (ast.For, ast.While)) for a in facts.ancestors(statement))
    return looped and not asks and may_be_none(one) != may_be_none(other)


def evaluated_by(statements: Sequence[ast.stmt]) -> list[ast.expr]:
    """What statements evaluate."""
    found: list[ast.expr] = []
    for statement in statements:
        for node in ast.iter_child_nodes(statement):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                found += [node.value, node.slice]
            elif isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store):
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


def bound_to(facts: FunctionFacts, statements: Sequence[ast.stmt], name: str) -> Value:
    """What a name may be after statements that bind it in several places."""
    values = []
    for node in (n for s in statements for n in nodes_in(s)):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = [*zip(target.elts, node.value.elts, strict=False)]
                values += [facts.value(v) for t, v in pairs if isinstance(t, ast.Name) and t.id == name]
    return join_all(values)
