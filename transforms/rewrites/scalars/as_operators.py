"""Write `divmod` as the two operators that it is.

Before:
    row, column = divmod(scores.argmax().item(), width)

After:
    row, column = scores.argmax().item() // width, scores.argmax().item() % width

Legal when:
    both operands are computed without effects, and the builtin is meant.

Differs in:
    nothing for whole numbers. It is written for the mends of what each operator takes out of a tensor, and stays where
    they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import called, number_type
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "as_operators"


@asks("effects", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    around = (facts.node, *facts.ancestors(facts.node))
    call = next((c for n in around if isinstance(n, ast.expr) and (c := called(facts, n, "builtins.divmod"))), None)
    if call is None or len(call.args) != 2 or call.keywords:
        return None
    if not all(_comes_again(facts, a) for a in call.args):
        return refuse(NAME, f"`{ast.unparse(call)}` does more than compute its operands")
    code = Code(facts.source)
    one, other = map(code.operand, call.args)
    whole = all(number_type(facts, a) == "int" for a in call.args[1:])
    differs = [] if whole else [Difference("rounding", "a quotient of floats may round otherwise than `divmod` does")]
    text = f"({one} // {other}, {one} % {other})"
    title = "write the quotient and the rest as operators"
    return prepare(NAME, title, facts, lambda: [replace_expression(facts.source, call, text)], differs)


def _comes_again(facts: FunctionFacts, node: ast.expr) -> bool:
    """May an operand be evaluated twice: an expression of tensors, or the number that is taken out of one?"""
    match node:
        case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[], keywords=[]):
            return repeatable(facts, inner)
        case ast.Call(func=ast.Name(id="int"), args=[inner], keywords=[]):
            return _comes_again(facts, inner)
        case _:
            return repeatable(facts, node)
