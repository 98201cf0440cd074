"""Write a conditional expression that gives None on one side as a branch.

Before:
    extra = x.mean() if x.max() > 0 else None
    if extra is None:
        return x
    return x + extra

After:
    if x.max() > 0:
        extra = x.mean()
    else:
        extra = None
    if extra is None:
        return x
    return x + extra

Legal when:
    a name is bound to a conditional expression on a tensor of which one side is None: it cannot be selected, but what
    follows says what it means.

Differs in:
    nothing: the same is asked, evaluated and bound. It is written for the mends of branches, and stays where they
    remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.rewrites.answers import asks
from graphmend.transforms.rewrites.respelled import spell

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "spelled_out"


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.IfExp() as chosen):
            pass
        case _:
            return None
    sides = (chosen.body, chosen.orelse)
    nothing = [isinstance(side, ast.Constant) and side.value is None for side in sides]
    if not any(nothing) or all(nothing) or not depends(facts, chosen.test):
        return None
    code = Code(facts.source)
    then, otherwise = (f"    {name} = {code.line(side)}" for side in sides)
    lines = [f"if {code.line(chosen.test)}:", then, "else:", otherwise]
    title = "write the conditional expression as a branch"
    return spell(NAME, title, facts, statement, "\n".join(lines) + "\n")
