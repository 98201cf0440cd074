"""The `if` statement that a finding is about."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.if_conversion.tensor_predicates import depends

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


def _inside(facts: FunctionFacts, test: ast.expr) -> bool:
    return facts.node is test or facts.node in (*ast.walk(test),) or isinstance(facts.node, ast.stmt)
