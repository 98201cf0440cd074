"""Write `and` and `or`, where their value is used, as the conditional expression that they are.

Before:
    scale = x.max() or x.mean()

After:
    value = x.max()
    scale = value if value else x.mean()

Legal when:
    the operands in front of the last one are tensors, and may be evaluated once more where they cannot be given a name
    in front of the statement. The last one only computes.

Differs in:
    nothing: the same is asked, evaluated and given. It is written for the mends of conditional expressions, and stays
    where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.qualified_names import is_tensor
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.named_parts import named

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "chosen_by_truth"


@asks("effects", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    around = (n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.expr))
    joined = next((n for n in around if isinstance(n, ast.BoolOp)), None)
    if joined is None or not any(facts.node is n for n in (joined, *joined.values)) or _is_only_asked(facts, joined):
        return None
    for operand in joined.values[:-1]:
        if not is_tensor(facts, operand):
            return refuse(NAME, f"`{shortened(operand)}` is not known to be a tensor")
        if not repeatable(facts, operand):
            return refuse(NAME, f"`{shortened(operand)}` would be evaluated more than once")
    if found := effects(facts, joined.values[-1]):  # it may change what a name in front of the statement stands for
        return refuse(NAME, found[0])
    code = Code(facts.source)
    text = code.operand(joined.values[-1])
    for operand in reversed(joined.values[:-1]):
        asked = code.operand(operand)
        sides = (asked, text) if isinstance(joined.op, ast.Or) else (text, asked)
        text = f"({sides[0]} if {asked} else {sides[1]})"

    def make() -> list[TextEdit]:
        first = code.operand(joined.values[0])
        edits, texts = named(facts, {joined: text}, {first: "value"})
        return [*edits, replace_expression(facts.source, joined, texts[joined])]

    return prepare(NAME, "write the choice as a conditional expression", facts, make)


def _is_only_asked(facts: FunctionFacts, node: ast.BoolOp) -> bool:
    """Is only the truth of an expression asked for, by a test that has mends of its own?"""
    child: ast.AST = node
    above = facts.parent(node)
    while isinstance(above, ast.BoolOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)):
        child, above = above, facts.parent(above)
    return isinstance(above, (ast.If, ast.While, ast.IfExp, ast.Assert)) and above.test is child
