"""What a function hands over to code that may keep it."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.liveness import locals_of, reads
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.operations import names as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@lru_cache(maxsize=2)
def handed_over(facts: FunctionFacts) -> tuple[ast.expr, ...]:
    """The expressions whose values are stored outside of local names, or given to code that is not known."""
    found: list[ast.expr] = []
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for node in ast.walk(facts.function):
        if isinstance(node, ast.Assign) and any(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets):
            owners = [facts.value(t.value) for t in node.targets if isinstance(t, (ast.Attribute, ast.Subscript))]
            found += [] if all(isinstance(o, Tensor) for o in owners) else [node.value]
        elif isinstance(node, ast.AugAssign) and not isinstance(facts.value(node.target), Tensor):
            found.append(node.value)
        elif isinstance(node, ast.For) and not isinstance(node.target, (ast.Name, ast.Tuple)):
            found.append(node.iter)
        elif isinstance(node, ast.Call) and may_keep(facts, node):
            found += [*node.args, *(k.value for k in node.keywords)]
        elif isinstance(node, inner) and node is not facts.function:
            found += [ast.Name(n, ast.Load()) for n in sorted(reads(node) & locals_of(facts.function))]
    return tuple(found)


def may_keep(facts: FunctionFacts, node: ast.Call) -> bool:
    """Does a call run code that may keep its arguments?"""
    value = facts.value(node.func)
    if isinstance(value, ExternalInstance) and value.cls.startswith("torch.nn."):
        return False
    name = qualified(facts, node.func) or ""
    folder = name.rpartition(".")[0]
    return folder not in (*known.FUNCTIONAL, "builtins", "math") and not name.startswith("logging.")
