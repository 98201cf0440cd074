"""What a form of `torch_form` answers, and which expression it is asked about."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.fix import Difference

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: node to replace, new text, what differs
Form = tuple[ast.expr, str, list[Difference]]


def asked(facts: FunctionFacts) -> ast.expr:
    """The expression that the finding is about."""
    node = facts.node
    if isinstance(node, ast.Expr):
        return node.value
    return node if isinstance(node, ast.expr) else ast.Constant(None)
