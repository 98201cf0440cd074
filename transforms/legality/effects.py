"""Does code do more than compute: write, draw, print, consume, run what is not known?"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.operations import names as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_BUILTINS = frozenset(
    "len min max abs int float bool tuple list isinstance hasattr getattr range sum round str".split()
)


def effects(facts: FunctionFacts, *nodes: ast.AST) -> list[str]:
    """What evaluating code does besides giving a value: a sentence for each, none where it only computes."""
    found: list[str] = []
    for whole in nodes:
        for node in ast.walk(whole):
            if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
                found.append(f"`{_short(node)}` does more than compute")
            elif isinstance(node, ast.Call):
                _called(facts, node, found)
    return found


def is_layer(facts: FunctionFacts, function: ast.expr) -> bool:
    """Is what is called a layer of torch that only computes?"""
    value = facts.value(function)
    return isinstance(value, ExternalInstance) and value.cls in known.LAYERS


def _called(facts: FunctionFacts, node: ast.Call, found: list[str]) -> None:
    name = qualified(facts, node.func)
    if is_layer(facts, node.func):
        return
    if name is None:
        found.append(f"`{_short(node.func)}` may have side effects")
        return
    folder, _, last = name.rpartition(".")
    if folder == "builtins" and last in _BUILTINS:
        if any(isinstance(facts.value(a), Tensor) for a in node.args) and last in ("int", "float", "bool", "str"):
            found.append(f"`{_short(node)}` takes a Python value out of a tensor")
    elif name == "graphmend.runtime.select":
        pass  # what its functions do is judged with their bodies, which stand in the call
    elif name.startswith("math.") or name in ("torch.finfo", "torch.iinfo", "torch.tensor", "torch.device"):
        pass
    elif folder not in known.FUNCTIONAL:
        found.append(f"`{_short(node.func)}` may have side effects")
    elif last in known.RANDOM and not _no_dropout(node, last):
        found.append(f"`{name}` draws random numbers, and would draw them on both sides")
    elif last in known.EFFECTFUL or last.endswith("_") or any(k.arg == "out" for k in node.keywords):
        found.append(f"`{_short(node.func)}` changes something")
    elif any(k.arg == "inplace" and constant(k.value) is not False for k in node.keywords):
        found.append(f"`{_short(node)}` works in place")


def _no_dropout(node: ast.Call, last: str) -> bool:
    if "dropout" in last:
        return any(k.arg == "training" and constant(k.value) is False for k in node.keywords)
    if last == "scaled_dot_product_attention":
        return len(node.args) < 5 and all(k.arg != "dropout_p" or constant(k.value) in (0, 0.0) for k in node.keywords)
    return False


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 50 else f"{text[:47]}..."
