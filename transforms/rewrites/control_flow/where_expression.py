"""Compute both sides of a conditional expression and select with `torch.where`.

Before:
    y = x + 1 if x.sum() > 0 else x

After:
    y = torch.where(x.sum() > 0, x + 1, x)

Legal when:
    as for the statement: the test is one element of a tensor, both sides are tensors of one shape and only compute.
    Or one is a number, which fills the shape of the other, where a tensor is computed with it.

Differs in:
    as for the statement: both sides are computed, and a side that is an existing tensor gives a copy of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import name_given
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import is_tensor
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.blocks import Block
from graphmend.transforms.if_conversion.selection import RETURN, NotSelectableError, aliasing, select
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import split
from graphmend.transforms.legality.gradients.sides import gradient_differences
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "where_expression"


@asks("effects", "totality", "memory", "dtypes", "numbers", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    chosen = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.IfExp)), None)
    if chosen is None or facts.node not in (*nodes_in(chosen.test), chosen):
        return None
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        static, tests = split(facts, chosen.test)
        if not tests:
            raise NotATensorError("the test is not known to look at a tensor")
        test = predicates.all_of(tests)
        sides = [
            Block(facts, predicates, "side", facts.statement, facts.statement, taken)
            for taken in (lambda: f"({test})", lambda: f"~({test})")
        ]
        then, other = sides[0].choice(chosen.body), sides[1].choice(chosen.orelse)
        protected = sides[0].run([]).protected | sides[1].run([]).protected
        text = select(predicates, test, then, other, lambda uses: uses.follow(chosen))
        if test not in text:
            raise NotSelectableError("both sides give the same: nothing would ask the test, which may raise")
        handed = aliasing(facts, _receiver(facts, chosen), then, other, facts.statement)
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    differences = [
        *predicates.differences,
        *([] if _consumed(facts, chosen) else handed),
        *gradient_differences(facts, facts.statement, [[chosen.body], [chosen.orelse]], protected),
    ]
    if static:
        head = " and ".join(predicates.code.operand(s) for s in static)
        # as it stands: what keeps the side harmless where it is not taken asks the test, which is not asked here
        text = f"({text} if {head} else {predicates.code.argument(chosen.orelse)})"

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_expression(facts.source, chosen, text)]

    return offer(NAME, "compute both sides and select with torch.where", facts, make, differences)


def _receiver(facts: FunctionFacts, chosen: ast.IfExp) -> str | None:
    """The name that an expression is bound to, `RETURN` where it is returned, None where it goes elsewhere."""
    return RETURN if isinstance(facts.parent(chosen), ast.Return) else name_given(facts, chosen)


def _consumed(facts: FunctionFacts, chosen: ast.IfExp) -> bool:
    """Is what is chosen an operand of arithmetic, which makes new memory?"""
    parent = facts.parent(chosen)
    return isinstance(parent, (ast.BinOp, ast.Compare)) and is_tensor(facts, parent)
