"""Which positions of a dimension lie inside a slice whose bounds are tensors, as text."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.rows.places import not_negative

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def inside_slice(
    facts: FunctionFacts, imports: Imports, part: ast.Slice, tensor: str, size: str, *, line: bool = False
) -> str:
    """A test of each position; where it must be known to be a `line`, as one. `size` is the text of how many there are
    in the dimension, and the positions lie on the device of `tensor`.
    """
    positions = positions_of(imports, tensor, size)
    tests = []
    for bound, sign in ((part.lower, ">="), (part.upper, "<")):
        if bound is not None and not (constant(bound) == 0 and sign == ">="):
            tests.append(f"{positions} {sign} {bound_text(facts, imports, bound, size, line=line)}")
    return tests[0] if len(tests) == 1 else " & ".join(f"({test})" for test in tests)


def positions_of(imports: Imports, tensor: str, size: str) -> str:
    return f"{imports.name('torch.arange')}({size}, device={tensor}.device)"


def bound_text(facts: FunctionFacts, imports: Imports, bound: ast.expr, size: str, *, line: bool = False) -> str:
    """The position that a bound means: below zero it counts from the end."""
    text, value = Code(facts.source).operand(bound), facts.value(bound)
    if line and isinstance(value, Tensor) and value.rank is None:
        text += ".reshape(())"
    if not_negative(facts, bound):
        return text
    # the size may be more than the bound's dtype holds
    whole = text if isinstance(value, Tensor) and value.dtype == "int64" else f"{text}.long()"
    return f"{imports.name('torch.where')}({text} < 0, {whole} + {size}, {text})"
