"""What a form of `torch_form` answers, and which expression it is asked about."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import UNKNOWN
from graphmend.transforms.code.qualified_names import is_tensor
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


def taken_for_tensor(facts: FunctionFacts, node: ast.expr) -> list[Difference] | None:
    """What differs where an expression is no tensor; None where it is known to be none, or may be several things."""
    if is_tensor(facts, node):
        return []
    if not isinstance(node, ast.Name) or facts.value(node) not in (None, UNKNOWN):
        return None
    return [Difference("type", f"`{node.id}` is taken to be a tensor")]
