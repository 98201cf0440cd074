"""What the place of a statement means for it: who would see its exceptions, what its function is given to. Whether
gradients are recorded there says `FunctionFacts.gradients`.
"""

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


_TRANSFORMS = frozenset("vmap grad grad_and_value jacrev jacfwd hessian jvp vjp functionalize linearize".split())


def transformed(facts: FunctionFacts) -> bool:
    """Is the function given to `torch.vmap` or one of `torch.func`'s transforms somewhere in the file, where a test on
    a tensor raises?
    """
    tree = facts.source.tree
    name = facts.function.name
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call) or not node.args:
            continue
        callee = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = node.args[0]
        named = given.attr if isinstance(given, ast.Attribute) else getattr(given, "id", "")
        if callee in _TRANSFORMS and named == name:
            return True
    return any(_last(d) in _TRANSFORMS for d in facts.function.decorator_list)


def _last(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
