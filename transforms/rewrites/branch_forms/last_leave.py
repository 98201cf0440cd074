"""Ask behind a branch what its side asks last to leave a loop.

Before:
    for loss in losses:
        if loss < best:
            best = loss
        else:
            bad = bad + 1
            if bad >= 2:
                break

After:
    for loss in losses:
        condition = loss < best
        if condition:
            best = loss
        else:
            bad = bad + 1
        if not condition and bad >= 2:
            break

Legal when:
    a side of a branch on a tensor ends in an `if` without `else` that leaves the loop or the function, and nothing else
    in the branch does. The test of the branch is a new tensor, or one that nobody changes in place.

Differs in:
    nothing: the same is asked in the same order. It is written for the mends of loops and branches, and stays where
    they remove the break. Parts of a test that `and` joins are all evaluated.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, TypeGuard

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import always_leaves
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.asked_again import named

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "last_leave"
_LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@asks("effects", "totality", "memory", "numbers", "gradients", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.If) or not depends(facts, statement.test):
        return None
    sides = [side for side in (statement.body, statement.orelse) if side and _is_leaving(side[-1])]
    if len(sides) != 1:
        return None
    last = sides[0][-1]
    inside = [n for n in nodes_in(statement) if isinstance(n, _LEAVES)]
    if len(inside) != 1 or not isinstance(last, ast.If):
        return None
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        return refuse(NAME, "the statement shares its line with another one")
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        asked = named(predicates, statement.test, [statement])
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    if asked.static:
        return refuse(NAME, "the test is not about tensors alone")
    lines = list(asked.lines)
    kept: list[list[ast.stmt]] = []
    for side, test in ((statement.body, asked.holds), (statement.orelse, asked.fails)):
        rest = [s for s in side if s is not last and not isinstance(s, ast.Pass)]
        if rest:
            lines += ["else:" if kept else f"if {test}:", f"    {HOLE.format(len(kept))}"]
            kept.append(rest)
    holds = asked.holds if sides[0] is statement.body else asked.fails
    lines += [f"if {holds} and {predicates.code.operand(last.test)}:", f"    {HOLE.format(len(kept))}"]
    kept.append(last.body)
    return prepare(
        NAME,
        "ask behind the branch whether the loop is left",
        facts,
        lambda: [*imports.edits(), replace_statements(facts.source, [statement], "\n".join(lines) + "\n", *kept)],
        predicates.differences,
    )


def _is_leaving(statement: ast.stmt) -> TypeGuard[ast.If]:
    return isinstance(statement, ast.If) and not statement.orelse and always_leaves(statement.body)
