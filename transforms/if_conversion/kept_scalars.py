"""A Python number taken out of a tensor, kept as the 0-d tensor that it came from. Used inside tests and arithmetic."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar, Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import constant, is_tensor, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@dataclass
class Kept:
    """Replacements that keep tensors in an expression."""

    replace: dict[ast.expr, str] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)
    boolean: bool = False
    """Is the whole expression a bool tensor then?"""


def kept(facts: FunctionFacts, node: ast.expr, detach: bool = False) -> Kept | None:
    """How to write an expression without taking numbers out of tensors; None where nothing is taken, or no way
    is known.
    """
    result = tensors_in(facts, node, detach=detach)
    if result is None:
        return None
    for inner in result.replace:
        try:
            uses = ScalarUses(facts)
            uses.follow(inner)
        except NeedsPythonNumberError:
            return None
    result.boolean = isinstance(node, ast.Compare) or _is_bool(facts, node)
    if isinstance(node, ast.Compare) and not all(_exact(facts, c, result) for c in [node.left, *node.comparators]):
        result.differences.append(
            Difference("rounding", "numbers are compared in the tensor's precision instead of Python's")
        )
    return result


def tensors_in(facts: FunctionFacts, node: ast.expr, *, detach: bool = False) -> Kept | None:
    """A tensor for every number that an expression takes out of one; None where it takes none, or none is known."""
    result = Kept()
    for inner in _outermost(facts, node):
        text = tensor_text(facts, inner, result, detach=detach)
        if text is None:
            return None
        result.replace[inner] = text
    return result if result.replace else None


def _outermost(facts: FunctionFacts, node: ast.expr) -> list[ast.expr]:
    """The conversions in an expression that are not inside another one."""
    if conversion(facts, node) is not None:
        return [node]
    found: list[ast.expr] = []
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            found += _outermost(facts, child)
    return found


def conversion(facts: FunctionFacts, node: ast.expr) -> tuple[str, ast.expr] | None:
    """("item" | "int" | "float" | "bool", operand) where `node` takes a Python number out of its operand."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "item" and not node.args:
        return ("item", node.func.value) if is_tensor(facts, node.func.value) else None
    name = qualified(facts, node.func) or ""
    if name in ("builtins.int", "builtins.float", "builtins.bool") and len(node.args) == 1:
        inner = node.args[0]
        if is_tensor(facts, inner) or isinstance(facts.value(inner), Scalar):
            return name.rpartition(".")[2], inner
    return None


def tensor_text(facts: FunctionFacts, node: ast.expr, result: Kept, *, detach: bool) -> str | None:
    """A 0-d tensor with the value of a conversion, as text for a place next to an operator."""
    found = conversion(facts, node)
    if found is None:
        return None
    kind, operand = found
    value = facts.value(operand)
    if isinstance(value, Scalar):
        text = tensor_text(facts, operand, result, detach=detach)
        source = _source(facts, operand)
        if text is None or source is None:
            return None
        value = source
    elif isinstance(value, Tensor):
        text = Code(facts.source).operand(operand)
        if value.rank != 0:
            text = f"{text}.reshape(())"
        if detach and dtype_kind(value.dtype) not in ("int", "bool"):
            text = f"{text}.detach()"
    else:
        return None
    of = dtype_kind(value.dtype)
    if kind == "int" and of != "int":
        text = f"{text}.long()"
        if of != "bool":
            result.differences.append(Difference("exception", "`int` of NaN or infinity no longer raises"))
    elif kind == "bool" and of != "bool":
        text = f"({text} != 0)"
    elif kind == "float" and of in ("int", "bool"):
        text = f"{text}.double()"
    return text


def _source(facts: FunctionFacts, node: ast.expr) -> Tensor | None:
    found = conversion(facts, node)
    if found is None:
        return None
    value = facts.value(found[1])
    return value if isinstance(value, Tensor) else _source(facts, found[1])


def _is_bool(facts: FunctionFacts, node: ast.expr) -> bool:
    found = conversion(facts, node)
    if found is None:
        return False
    value = facts.value(found[1])
    return found[0] == "bool" or (found[0] == "item" and isinstance(value, Tensor) and value.dtype == "bool")


def _exact(facts: FunctionFacts, node: ast.expr, result: Kept) -> bool:
    """Does a side of a comparison mean the same in any dtype: a small whole number, or a tensor of whole numbers?"""
    number = constant(node)
    if isinstance(number, (bool, int, float)):
        return number in (float("inf"), float("-inf")) or (abs(number) <= 2048 and float(number).is_integer())
    return node in result.replace or isinstance(facts.value(node), Tensor)
