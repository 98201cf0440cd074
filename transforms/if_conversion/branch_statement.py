"""The `if` statement that a finding is about, and what can be told of tests and paths by their form."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Choice, Static, Tensor, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.qualified_names import is_tensor
from graphmend.transforms.if_conversion.value_tests import depends

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def branch(facts: FunctionFacts) -> ast.If | None:
    """The `if` statement whose test the finding is in; of nested ones on tensors the outermost."""
    statement: ast.AST | None = facts.statement
    if not isinstance(statement, ast.If) or not _inside(facts, statement.test):
        return None
    if any(isinstance(s, (ast.Break, ast.Continue)) for s in statement.body):
        return None
    while isinstance(parent := facts.parent(statement), ast.If) and depends(facts, parent.test):
        statement = parent
    assert isinstance(statement, ast.If)
    return statement


def returns(statements: Sequence[ast.stmt]) -> bool:
    """Does a block return on every path?"""
    last = statements[-1] if statements else None
    if isinstance(last, ast.If):
        return returns(last.body) and returns(last.orelse)
    return isinstance(last, ast.Return)


def may_return(statement: ast.stmt) -> bool:
    """Does a statement return on some path?"""
    return any(isinstance(n, ast.Return) for n in nodes_in(statement))


def asks_for_none(test: ast.expr) -> tuple[str, bool] | None:
    """The name of which a test asks whether it is None, or is not, and the answer for None."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = asks_for_none(operand)
            return None if inner is None else (inner[0], not inner[1])
        case ast.Compare(
            left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]
        ):
            return name, isinstance(op, ast.Is)
    return None


def bound_first(test: ast.expr) -> ast.NamedExpr | None:
    """The `n := ...` that a test evaluates before anything else, which may as well stand in front of it."""
    while not isinstance(test, ast.NamedExpr):
        match test:
            case ast.Compare(left=first) | ast.BinOp(left=first) | ast.UnaryOp(operand=first):
                test = first
            case ast.BoolOp(values=[first, *_]) | ast.Call(func=ast.Attribute(value=first)):
                test = first
            case ast.Attribute(value=first) | ast.Subscript(value=first):
                test = first
            case _:
                return None
    return test


def is_asked_as_it_is(facts: FunctionFacts, test: ast.expr) -> bool:
    """Is a test a tensor, on some paths a Python value: nothing that takes one out of a tensor?"""
    value = facts.value(test)
    if isinstance(test, ast.Name) and isinstance(value, Choice):
        return all(isinstance(o, Static) or (isinstance(o, Tensor) and not o.ndarray) for o in options(value))
    if isinstance(test, ast.Compare):
        return len(test.ops) == 1 and isinstance(value, Tensor) and not isinstance(test.ops[0], (ast.In, ast.NotIn))
    return isinstance(value, Tensor) and not value.ndarray and not isinstance(test, ast.UnaryOp)


def is_detached(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach"


def _inside(facts: FunctionFacts, test: ast.expr) -> bool:
    return facts.node is test or facts.node in (*nodes_in(test),) or isinstance(facts.node, ast.stmt)


def given_up(facts: FunctionFacts, statement: ast.If) -> str | None:
    """What one side binds to something that is no tensor, and a test of the other side reads: both are evaluated."""
    for branch in (n for n in nodes_in(statement) if isinstance(n, ast.If)):
        bound: set[str] = set()
        for node in (n for s in branch.body for n in nodes_in(s)):
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                above = facts.parent(node)
                value = above.value if isinstance(above, (ast.Assign, ast.AugAssign, ast.AnnAssign)) else None
                if value is None or not is_tensor(facts, value):
                    bound.add(node.id if isinstance(node, ast.Name) else node.attr)
        tests = [n.test for s in branch.orelse for n in nodes_in(s) if isinstance(n, ast.If)] if bound else []
        for read in (n for test in tests for n in nodes_in(test)):
            name = read.id if isinstance(read, ast.Name) else read.attr if isinstance(read, ast.Attribute) else None
            if name in bound:
                return name
    return None
