"""Which dtypes may come, and what a cast or a Python number does to them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Literal

from graphmend.analysis.lattice.values import Tensor, dtype_kind

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: what dtypes have in common; `uint8` stands apart, because it is a mask where another integer is an index
Kind = Literal["bool", "uint8", "int", "float", "complex"]


def kind(facts: FunctionFacts, node: ast.expr) -> Kind | None:
    """The kind of a tensor or a Python number; None where several are possible."""
    value = facts.value(node)
    if not isinstance(value, Tensor):
        return None
    if value.dtype == "uint8":
        return "uint8"
    return dtype_kind(value.dtype)  # type: ignore[return-value]


def casts_into(facts: FunctionFacts, target: ast.expr, value: ast.expr) -> bool | None:
    """Does writing `value` into `target` in place do what `copy_` of it does: True for certain, False where it raises
    instead, None where that is not known?
    """
    order = ("bool", "uint8", "int", "float", "complex")
    into, of = kind(facts, target), kind(facts, value)
    if into is None or of is None:
        return None
    return order.index(of) <= order.index(into)
