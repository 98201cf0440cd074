"""What the place of a statement means for it: who would see its exceptions, whether gradients are recorded."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def observed(facts: FunctionFacts, statement: ast.stmt) -> bool:
    """Is there a `try` in the function that would see an exception of a statement?"""
    inside: ast.AST = statement
    for above in facts.ancestors(statement):
        if isinstance(above, ast.Try) and above.handlers and inside in above.body:
            return True
        inside = above
    return False
