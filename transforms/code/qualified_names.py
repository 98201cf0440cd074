"""What a callee is, by qualified name: the file's imports and the analysis's values, local names excepted."""

from __future__ import annotations

import ast
import builtins
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.external import ExternalInstance, ExternalName
from graphmend.analysis.lattice.values import Static, Tensor, tensor_in
from graphmend.analysis.program.entities import Class, Function
from graphmend.transforms.code.liveness import locals_of

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def qualified(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The qualified name of an expression: `torch.where`, `builtins.print`, `torch.Tensor.sum`; None where it
    is not known.
    """
    value = facts.value(node)
    if isinstance(value, ExternalName):
        return value.name
    if isinstance(node, ast.Attribute):
        base = facts.value(node.value)
        if isinstance(base, Tensor) and not base.ndarray:
            return f"torch.Tensor.{node.attr}"
        if isinstance(base, ExternalInstance):
            return f"{base.cls}.{node.attr}"
        above = qualified(facts, node.value)
        return f"{above}.{node.attr}" if above else None
    if isinstance(node, ast.Name):
        if node.id in locals_of(facts.function):
            return None
        if node.id in facts.names:
            return facts.names[node.id]
        own = isinstance(value, (Function, Class))  # of the module, by a builtin's name
        return f"builtins.{node.id}" if hasattr(builtins, node.id) and not own else None
    return None


def called(facts: FunctionFacts, node: ast.expr, *names: str) -> ast.Call | None:
    """`node` where it is a call of one of `names`."""
    return node if isinstance(node, ast.Call) and qualified(facts, node.func) in names else None


def asks_for_none(node: ast.AST | None) -> bool:
    """Is this `... is None` or `... is not None`?"""
    match node:
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return True
    return False


def method(facts: FunctionFacts, node: ast.expr, *names: str) -> ast.Call | None:
    """`node` where it is a call of one of the methods `names` of a tensor."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
        return node if tensor_in(facts.value(node.func.value)) is not None else None
    return None


def listed(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """The tensor of one dimension whose numbers `node` lists: `t` of `t.tolist()`."""
    call = method(facts, node, "tolist")
    tensor = call.func.value if call is not None and isinstance(call.func, ast.Attribute) else None
    value = facts.value(tensor) if tensor is not None else None
    return tensor if isinstance(value, Tensor) and value.rank == 1 else None


_MAKES = (
    *("zeros", "ones", "full", "empty", "eye", "arange"),
    *("zeros_like", "ones_like", "full_like", "empty_like", "clone"),
)


def makes_tensor(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a node a call that makes a tensor that nothing else holds, and that asks for no gradients by itself?"""
    if called(facts, node, *(f"torch.{name}" for name in _MAKES)):
        return not any(k.arg in ("requires_grad", "out") for k in getattr(node, "keywords", ()))
    return method(facts, node, "clone", "new_zeros", "new_ones", "new_full") is not None


def written_tensor(node: ast.expr) -> ast.expr:
    """The tensor that a chain of methods in place works on."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        node = node.func.value
    return node


def is_tensor(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression a torch tensor on every path that the analysis saw?"""
    value = facts.value(node)
    return isinstance(value, Tensor) and not value.ndarray


def constant(node: ast.expr | None) -> object:
    """The value of a literal, signs included; None for everything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        number = node.operand.value
        return -number if isinstance(number, (int, float)) and not isinstance(number, bool) else None
    return node.value if isinstance(node, ast.Constant) else None


def number_type(facts: FunctionFacts, node: ast.expr) -> str | None:
    """The type of a Python number that is known while tracing."""
    literal = constant(node)
    if isinstance(literal, (bool, int, float)):
        return type(literal).__name__
    value = facts.value(node)
    return value.type if isinstance(value, Static) and value.type in NUMBER_TYPES else None


NUMBER_TYPES = ("bool", "int", "float")
