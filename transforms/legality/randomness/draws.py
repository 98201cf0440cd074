"""Which calls draw random numbers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_MODULES = ("random", "numpy.random", "torch.nn.init")


@answers("random")
def draws(facts: FunctionFacts, *nodes: ast.AST) -> list[ast.Call]:
    """The calls in code that draw random numbers, of whichever generator."""
    return [n for node in nodes for n in nodes_in(node) if isinstance(n, ast.Call) and is_draw(facts, n)]


def is_draw(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a call draw, as far as its name tells? What code of the project does is not looked at."""
    name = qualified(facts, call.func) or ""
    folder, _, last = name.rpartition(".")
    if folder in known.FUNCTIONAL:
        return last in known.DRAWN_IN_PLACE or (last in known.RANDOM and not _without_dropout(call, last))
    value = facts.value(call.func)
    if isinstance(value, ExternalInstance):
        return value.cls in known.RANDOM_LAYERS
    return folder in _MODULES


def from_torch(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a draw come from a generator of torch's, so that tracing makes it a node of the graph?"""
    name = qualified(facts, call.func) or ""
    return not name.startswith(("random.", "numpy."))


def _without_dropout(node: ast.Call, last: str) -> bool:
    if "dropout" in last:
        return any(k.arg == "training" and constant(k.value) is False for k in node.keywords)
    if last == "scaled_dot_product_attention":
        return len(node.args) < 5 and all(k.arg != "dropout_p" or constant(k.value) in (0, 0.0) for k in node.keywords)
    return False
