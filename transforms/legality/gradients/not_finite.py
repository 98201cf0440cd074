"""Mends that would make gradients NaN just where a program sees to values that are not finite.

What is selected by `torch.where` sends zeros into the side that is not taken, and a zero that reaches a value that is
NaN or infinite, or what has made it, is NaN behind that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.fix import Difference

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

POISONED = Difference("gradients", "gradients become NaN where values are not finite, which is asked for")
_FINITE = frozenset("isfinite isnan isinf isposinf isneginf".split())


def poisons(facts: FunctionFacts, differences: Iterable[Difference]) -> bool:
    """Do gradients reach a side that is not taken, by a mend whose finding asks whether values are finite?"""
    reached = any(difference.kind in ("gradients", "zero-gradients") for difference in differences)
    return reached and isinstance(facts.node, ast.expr) and _asks(facts, facts.node)


def trains(facts: FunctionFacts) -> bool:
    """Does a function most likely compute what a training step goes back through? A method does: of a module, of a
    loss. What a function of its own is called with may be anything.
    """
    tree = facts.source.tree
    classes = (node for node in nodes_in(tree) if isinstance(node, ast.ClassDef)) if tree is not None else ()
    return any(facts.function in cls.body for cls in classes)


def _asks(facts: FunctionFacts, test: ast.expr, seen: frozenset[str] = frozenset()) -> bool:
    """Does a test, or what its names are bound to, look for NaN or infinity?"""
    for node in nodes_in(test):
        match node:
            case ast.Call() if (qualified(facts, node.func) or "").rpartition(".")[2] in _FINITE:
                return True
            case ast.Compare(left=left, ops=[ast.NotEq()], comparators=[right]) if ast.dump(left) == ast.dump(right):
                return True
            case ast.Name(id=name) if name not in seen:
                values = [b.value for b in bindings(facts).get(name, []) if b.value is not None]
                if any(_asks(facts, value, seen | {name}) for value in values):
                    return True
    return False
