"""Write None on one side of an expression as a branch, a list that is sorted as a new one, one `yield` instead of two.

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

`parts.sort()` of a list that was made there becomes `parts = sorted(parts)`, and a branch that yields on either side
yields a conditional expression.

Legal when:
    a name is bound to a conditional expression on a tensor of which one side is None: it cannot be selected, but what
    follows says what it means. A list that is sorted is made in front, and nothing else has got it by then.

Differs in:
    nothing: the same is asked, evaluated and bound. It is written for the mends of branches, and stays where they
    remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import precedes, reaching
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.qualified_names import called
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
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(id=name) as own, "sort"), args=[], keywords=options)):
            if not _is_own(facts, own, statement):
                return None
            given = "".join(f", {k.arg}={Code(facts.source).line(k.value)}" for k in options if k.arg)
            return spell(NAME, "make a sorted list", facts, statement, f"{name} = sorted({name}{given})\n")
        case ast.If(
            test=test,
            body=[ast.Expr(ast.Yield(ast.expr() as then))],
            orelse=[ast.Expr(ast.Yield(ast.expr() as other))],
        ) if depends(facts, test):
            code = Code(facts.source)
            text = f"yield {code.operand(then)} if {code.line(test)} else {code.operand(other)}\n"
            return spell(NAME, "yield a conditional expression", facts, statement, text)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.IfExp() as chosen):
            pass
        case _:
            return None
    sides = (chosen.body, chosen.orelse)
    nothing = [isinstance(side, ast.Constant) and side.value is None for side in sides]
    if not any(nothing) or all(nothing) or not depends(facts, chosen.test):
        return None
    code = Code(facts.source)
    one, two = (f"    {name} = {code.line(side)}" for side in sides)
    lines = [f"if {code.line(chosen.test)}:", one, "else:", two]
    title = "write the conditional expression as a branch"
    return spell(NAME, title, facts, statement, "\n".join(lines) + "\n")


def _is_own(facts: FunctionFacts, name: ast.Name, statement: ast.stmt) -> bool:
    """Is a list made in front of a statement of the same block, and has nothing else got it by then?"""
    made = reaching(facts, name)
    match made:
        case ast.List() | ast.ListComp():
            pass
        case ast.Call() if called(facts, made, "builtins.list", "builtins.sorted"):
            pass
        case _:
            return False
    before = (
        n for n in nodes_in(facts.function)
        if isinstance(n, ast.Name) and n.id == name.id and isinstance(n.ctx, ast.Load)
        and precedes(made, n) and (n.lineno, n.col_offset) < (statement.lineno, statement.col_offset)
    )  # fmt: skip
    return all(
        isinstance(above := facts.parent(n), (ast.Attribute, ast.Subscript)) and above.value is n for n in before
    ) and not any(
        isinstance(n, (ast.FunctionDef, ast.Lambda)) and name.id in reads(n)
        for n in nodes_in(facts.function)
        if n is not facts.function
    )
