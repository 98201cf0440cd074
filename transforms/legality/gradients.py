"""Which gradients a value carries, and what gradients see of a side that was not taken."""

from __future__ import annotations

import ast
from collections.abc import Collection, Container, Sequence
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.lattice.values import Scalar, Static, Tensor, dtype_kind, tensor_in
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.operations import names as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: how a gradient of zero may come back from an expression: as zero for every input, for finite inputs, or not
Leak = Literal["never", "at infinity", "anywhere"]


def leak(facts: FunctionFacts, expression: ast.expr, protected: Container[ast.expr] = frozenset()) -> Leak:
    """Where a gradient of zero, sent into an expression whose side was not taken, may come out as NaN."""
    worst: Leak = "never"
    for node in ast.walk(expression):
        level: Leak = "never"
        if isinstance(node, ast.Call):
            last = (qualified(facts, node.func) or "").rpartition(".")[2]
            arguments = [*node.args, *([node.func.value] if isinstance(node.func, ast.Attribute) else [])]
            if not any(tensor_in(facts.value(a)) for a in arguments) or last in known.LEAKLESS:
                continue
            level = "anywhere" if last in known.SINGULAR else "at infinity"
        elif isinstance(node, ast.BinOp) and _floating(facts, node):
            sides = [tensor_in(facts.value(o)) for o in (node.left, node.right)]
            if isinstance(node.op, (ast.Add, ast.Sub)) or not any(sides):
                continue
            if isinstance(node.op, (ast.Div, ast.Mod, ast.FloorDiv)):
                level = "anywhere" if sides[1] else "never"
            elif isinstance(node.op, ast.Pow):
                level = "at infinity" if _small_power(node) else "anywhere"
            else:
                level = "at infinity" if all(sides) else "never"
        if level == "anywhere" and node in protected:
            level = "at infinity" if isinstance(node, ast.BinOp) else "never"
        if level == "anywhere" or worst == "never":
            worst = level
    return worst


def roots(facts: FunctionFacts, expression: ast.expr) -> set[str]:
    """The names in an expression that gradients may flow to."""
    return {n for n in reads(expression) if n not in facts.names and _may_carry(facts, expression, n)}


def _may_carry(facts: FunctionFacts, expression: ast.expr, name: str) -> bool:
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id == name:
            value = facts.value(node)
            kind = dtype_kind(value.dtype) if isinstance(value, Tensor) else None
            if isinstance(value, (Static, Scalar)) or kind in ("bool", "int"):
                continue
            return True
    return False


def _floating(facts: FunctionFacts, node: ast.expr) -> bool:
    return _kind(facts, node) not in ("bool", "int")


def _kind(facts: FunctionFacts, node: ast.expr) -> str | None:
    value = facts.value(node)
    return dtype_kind(value.dtype) if isinstance(value, Tensor) else None


def _small_power(node: ast.BinOp) -> bool:
    power = constant(node.right)
    return isinstance(power, int) and power >= 1


def carries(facts: FunctionFacts, node: ast.expr) -> frozenset[str]:
    """The paths that gradients reach from a value; none where it never asks for gradients."""
    return frozenset(roots(facts, node))


def gradient_differences(
    facts: FunctionFacts,
    statement: ast.stmt,
    sides: Sequence[Sequence[ast.expr]],
    protected: Collection[ast.expr] = frozenset(),
) -> list[Difference]:
    """What gradients see of a selection, for the expressions that each side evaluates."""
    if facts.gradients(statement) == "off":
        return []
    found: list[Difference] = []
    levels = {leak(facts, e, protected) for side in sides for e in side}
    if "anywhere" in levels:
        found.append(
            Difference("gradients", "gradients may become NaN where the derivative of the side not taken is not finite")
        )
    elif "at infinity" in levels:
        found.append(
            Difference("gradients", "gradients may become NaN where the side not taken holds infinite or NaN values")
        )
    flows = [set().union(*(roots(facts, e) for e in side)) if side else set() for side in sides]
    if len(flows) == 2 and flows[0] != flows[1] and all(flows):
        found.append(
            Difference(
                "zero-gradients", "inputs that only the side not taken uses get zeros for gradients instead of None"
            )
        )
    return found
