"""Take what stands beside a mask in an index first, and index by the mask alone.

Before:
    y = x[m] * weights[m, k]

After:
    y = x[m] * weights[:, k][m]

Legal when:
    the mask has one dimension and comes first in the index; beside it stand numbers that are known while tracing, and
    slices of such. Every such index of the function is written so.

Differs in:
    nothing: the same elements are read, or stored to. It is written for the mends of masks, and stays where they remove
    the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import is_tensor, number_type
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.rows.masked_elements import is_line, is_mask
from graphmend.transforms.rewrites.answers import asks, prepare

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "mask_alone"


@asks("effects", "domain")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node
    if not isinstance(node, ast.Subscript) or not _is_mixed(facts, node):
        return None
    alike = [n for n in nodes_in(facts.function) if isinstance(n, ast.Subscript) and _is_mixed(facts, n)]
    if any(_is_mixed(facts, inner) for n in alike for inner in nodes_in(n) if inner is not n):
        return None
    code = Code(facts.source)

    def make() -> list[TextEdit]:
        return [replace_expression(facts.source, n, _apart(code, n)) for n in alike]

    return prepare(NAME, "index by the mask alone", facts, make)


def _is_mixed(facts: FunctionFacts, node: ast.AST) -> bool:
    """Is a tensor indexed by a mask of one dimension, and by numbers and slices behind it?"""
    match node:
        case ast.Subscript(value=tensor, slice=ast.Tuple(elts=[mask, *beside])) if beside and is_mask(facts, mask):
            known = all(_is_known(facts, part) for part in beside) and not effects(facts, *beside, mask)
            return known and is_line(facts, mask) and is_tensor(facts, tensor)
    return False


def _apart(code: Code, node: ast.Subscript) -> str:
    assert isinstance(node.slice, ast.Tuple)
    mask, *beside = node.slice.elts
    others = ", ".join(code.text(part) for part in beside)
    return f"{code.operand(node.value)}[:, {others}][{code.argument(mask)}]"


def _is_known(facts: FunctionFacts, part: ast.expr) -> bool:
    """Is a part of an index a number, or a slice of such?"""
    if isinstance(part, ast.Slice):
        return all(bound is None or number_type(facts, bound) == "int" for bound in (part.lower, part.upper, part.step))
    return number_type(facts, part) == "int"
