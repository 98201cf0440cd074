"""Leave a loop where `itertools.takewhile`, which it runs over, would end.

Before:
    for g in takewhile(lambda v: v > 0, gains):
        total = total + g

After:
    for g in gains:
        if not (g > 0):
            break
        total = total + g

Legal when:
    the loop has no `else`, and the function is a lambda of one parameter: both ask it of one element after the other,
    as late as possible. What the loop binds stands for passed elements alone.

Differs in:
    nothing. It is written for the mends of loops that are left early, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, is_atom
from graphmend.transforms.code.liveness import alive, fresh, reads, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "as_break"


@asks("order", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    loop = facts.statement
    if not isinstance(loop, ast.For) or not called(facts, loop.iter, "itertools.takewhile"):
        return None
    match loop.iter:
        case ast.Call(
            args=[
                ast.Lambda(args=ast.arguments(args=[ast.arg(arg=parameter)]) as given, body=test),
                iterable,
            ],
            keywords=[],
        ) if not (given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or given.defaults):
            pass
        case _:
            return refuse(NAME, "what is asked of each element is no lambda")
    if loop.orelse or not replaceable(facts, [loop]):
        return refuse(NAME, "the loop has an `else`, or shares its line with another statement")
    own = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.NamedExpr)
    if any(isinstance(n, own) for n in nodes_in(test)):
        return refuse(NAME, "what is asked of each element binds names of its own")
    code, target = Code(facts.source), _name(loop.target)
    plain = target is not None and not alive(facts, target, loop) and (target == parameter or target not in reads(test))
    element = target if plain and target is not None else fresh(facts, parameter)
    names: dict[ast.expr, str] = {n: element for n in nodes_in(test) if isinstance(n, ast.Name) and n.id == parameter}
    if not plain and writes(loop.target) & (reads(test) - {parameter}):
        return refuse(NAME, "the loop binds what is asked of each element")
    asked = code.operand(test, names)
    lines = f"for {element} in {code.line(iterable)}:\n"
    lines += f"    if not {asked if is_atom(asked) else f'({code.line(test, names)})'}:\n        break\n"
    lines += "" if plain else f"    {code.text(loop.target)} = {element}\n"
    lines += f"    {HOLE.format(0)}\n"
    return prepare(
        NAME,
        "leave the loop where `takewhile` would end",
        facts,
        lambda: [replace_statements(facts.source, [loop], lines, loop.body)],
    )


def _name(target: ast.expr) -> str | None:
    return target.id if isinstance(target, ast.Name) else None
