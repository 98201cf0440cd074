"""How the elements of a result lie in memory, from those of what it is computed from."""

from __future__ import annotations

import ast
from collections.abc import Hashable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar, Static, Tensor
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.operations import names as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def layout(facts: FunctionFacts, node: ast.expr) -> Hashable | None:
    """A token of how the elements of a tensor lie in memory: equal tokens, equal strides for equal shapes. None where
    nothing is known.

    An operation of each element gives its result the strides of its only operand that has any (torch 2.13).
    """
    value = facts.value(node)
    if isinstance(value, Tensor) and value.rank == 0:
        return "one element"
    match node:
        case ast.Name(id=name):
            return ("path", name) if _is_incoming(facts.statement, name) else None
        case ast.Attribute():
            return ("path", ast.unparse(node))
        case ast.UnaryOp(operand=operand):
            return layout(facts, operand)
        case ast.BinOp(left=left, right=right) if not isinstance(node.op, ast.MatMult):
            return _one_layout(facts, left, right)
        case ast.Compare(left=left, comparators=[right]):
            return _one_layout(facts, left, right)
        case ast.Call():
            name = qualified(facts, node.func) or ""
            folder, _, last = name.rpartition(".")
            if folder not in known.FUNCTIONAL or last not in (known.ELEMENTWISE | known.TESTS | known.CASTS) - {
                "contiguous"
            }:
                return None
            receiver = [node.func.value] if folder == "torch.Tensor" and isinstance(node.func, ast.Attribute) else []
            if any(k.arg in ("memory_format", "out") for k in node.keywords):
                return None
            return _one_layout(facts, *receiver, *node.args, *(k.value for k in node.keywords))
    return None


def _is_incoming(statement: ast.stmt, name: str) -> bool:
    """Does every read of a name in a statement see the value from before it: is it bound once a side, and last?"""
    sides = [statement.body, statement.orelse] if isinstance(statement, ast.If) else [[statement]]
    for side in sides:
        binding = [i for i, inner in enumerate(side) if name in stored([inner])]
        if len(binding) > 1 or (binding and isinstance(side[binding[0]], (ast.If, ast.For, ast.While, ast.With))):
            return False
        if binding and any(name in reads(later) for later in side[binding[0] + 1 :]):
            return False
    return True


def _one_layout(facts: FunctionFacts, *operands: ast.expr) -> Hashable | None:
    found: set[Hashable] = set()
    for operand in operands:
        value = facts.value(operand)
        if isinstance(value, (Static, Scalar)) or constant(operand) is not None:
            continue
        found.add(layout(facts, operand))
    found.discard("one element")
    return found.pop() if len(found) == 1 else None
