"""Branch in each iteration of a loop instead of looping in a branch.

Before:
    if coef < 1:
        for g in grads:
            g.mul_(coef)

After:
    condition = coef < 1
    for g in grads:
        if condition:
            g.mul_(coef)

Legal when:
    a branch on a tensor without `else` holds one loop among its statements. Running over the loop's values does nothing
    by itself, what it runs over is not made by the branch, its variable is not read behind it, and it is not left
    early. The test of the branch is a new tensor, or one that nobody changes in place.

Differs in:
    what the loop runs over is evaluated where the branch is not taken, and may raise; a test of several elements raises
    only where there is an iteration. It is written for the mends of branches, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import alive, reads, stored, writes
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.loop_ends import run_through, runs_again
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.asked_again import named, of_several_elements

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "loop_outside"
_LEAVES = (ast.Return, ast.Break, ast.Continue)


@asks("effects", "totality", "memory", "order", "numbers", "gradients", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.If) or statement.orelse or not depends(facts, statement.test):
        return None
    loops = [s for s in statement.body if isinstance(s, ast.For)]
    if not loops:
        return None
    loop, at = loops[0], statement.body.index(loops[0])
    before, behind = statement.body[:at], statement.body[at + 1 :]
    reason = _why_not(facts, statement, loop)
    if reason is not None:
        return refuse(NAME, reason)
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        asked = named(predicates, statement.test, statement.body)
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    found = speculate(facts, loop.iter)
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    differences = [*predicates.differences, *found.differences, *run_through(facts, loop.iter)]
    differences += [] if before or behind else of_several_elements(facts, statement.test)
    code = predicates.code
    lines = list(asked.lines)
    kept: list[list[ast.stmt]] = []
    for part in (before, loop.body, behind):
        if part is loop.body:
            lines += [f"for {code.text(loop.target)} in {code.line(loop.iter)}:"]
        indent = "    " if part is loop.body else ""
        if part:
            lines += [f"{indent}if {asked.holds}:", f"{indent}    {HOLE.format(len(kept))}"]
            kept.append(part)
    if asked.static:
        lines = [f"if {asked.static}:", *(f"    {line}" for line in lines)]
    return prepare(
        NAME,
        "branch in each iteration of the loop",
        facts,
        lambda: [*imports.edits(), replace_statements(facts.source, [statement], "\n".join(lines) + "\n", *kept)],
        differences,
    )


def _why_not(facts: FunctionFacts, statement: ast.If, loop: ast.For) -> str | None:
    """Why a loop cannot stand around the branch that it is in."""
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        return "the statement shares its line with another one"
    if loop.orelse or any(isinstance(n, _LEAVES) for n in nodes_in(loop)):
        return "the loop is left early"
    if not runs_again(facts, loop.iter):
        return f"`{ast.unparse(loop.iter)}` may be used up by the loop"
    names = writes(loop.target)
    if any(isinstance(n, (ast.Attribute, ast.Subscript)) for n in nodes_in(loop.target)):
        return "the loop binds more than names"
    if any(alive(facts, name, statement) for name in names) or names & reads(statement.test):
        return "the loop's variable is read outside of it"
    if stored(statement.body) & reads(loop.iter):
        return f"`{ast.unparse(loop.iter)}` is bound in the branch"
    return None
