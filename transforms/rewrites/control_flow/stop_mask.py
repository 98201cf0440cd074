"""Run a loop to its end with a mask instead of leaving it early.

Before:
    for i in range(5):
        x = x * 2
        if x.sum() > 10:
            break

After:
    stopped = torch.zeros((), dtype=torch.bool, device=x.device)
    for i in range(5):
        x = torch.where(stopped, x, x * 2)
        stopped = stopped | (x.sum() > 10)

Legal when:
    the loop runs over something known while tracing that is not used up by it, or counts up or down to a bound that
    it does not change (`while err > tol and i < n`); its body only assigns names, besides branches that are known while
    tracing, and `if test:` with assignments and `break`, `continue` or one `return`, which moves
    behind the loop; what stands in front of the first `continue` may do anything. What is masked, tests too, has no
    effect, but for stores, output and attributes, which stay in a branch on the mask, for the mends of branches; each
    name that lives on is a tensor that keeps its shape and dtype (where a shape is not known,
    `graphmend.runtime.select` compares them while tracing), and is not changed in place where it may be another's; or
    a Python number of which every use takes a 0-d tensor. Where the loop's own variable, or what a `while` counts in,
    is read behind it or by the `return`, it is a whole number that is kept like that.

Differs in:
    the loop does all its iterations; what the skipped ones compute may raise, and its NaN derivatives may reach
    gradients; a tensor that the loop leaves as it was is a copy; a name that only the loop binds has a value where
    it was not bound.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.loop_ends import conjuncts
from graphmend.transforms.if_conversion.masked_loop import leaves, masked
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "stop_mask"
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


@asks("effects", "totality", "memory", "order", "dtypes", "numbers", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    loop = _loop_of(facts)
    if loop is None:
        return None
    if isinstance(loop, ast.AsyncFor):
        return refuse(NAME, "the loop has no fixed number of iterations")
    imports = Imports(facts)
    try:
        ended = masked(facts, loop, imports)
    except (NotSelectableError, NotATensorError) as error:
        return refuse(NAME, str(error))
    if not begins_line(facts.source, loop) or not all(replaceable(facts, [s]) for s in loop.body):
        return refuse(NAME, "the loop shares its lines with other statements")
    return offer(
        NAME, "do all iterations under a mask", facts, lambda: [*imports.edits(), *ended.edits()], ended.differences
    )


def _loop_of(facts: FunctionFacts) -> ast.For | ast.AsyncFor | ast.While | None:
    """The loop that a test of a tensor leaves early: by its own condition, or by a branch inside."""
    statement = facts.statement
    if isinstance(statement, ast.While):
        parts = conjuncts(statement.test)
        ended = len(parts) > 1 or any(
            isinstance(s, ast.If) and isinstance(s.body[-1], ast.Break) for s in statement.body
        )
        return statement if ended and any(depends(facts, p) for p in parts) else None
    if not leaves(statement):
        return None
    child: ast.AST = statement
    for above in facts.ancestors(statement):
        if isinstance(above, _LOOPS):
            return above if child in above.body else None
        if not isinstance(above, ast.If):
            return None
        child = above
    return None
