"""Leave out the question whether a mask picks anything, where functions that are given it do nothing if it does not.

Before:
    if not expired.any():
        return
    self.replace(batch, expired)

After:
    self.replace(batch, expired)

Legal when:
    what the question guards only computes, and stores under the mask, also in functions of the file that are given it;
    no name that it binds is read elsewhere.

Differs in:
    what is guarded is evaluated, and writes to the same memory, where the mask picks nothing, and may raise.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import HOLE, deletion, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.value_tests import effects_of_test
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.neutral.elements import is_zero
from graphmend.transforms.legality.neutral.idle import Idle
from graphmend.transforms.legality.neutral.uniform import Uniform
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "nothing_picked"


@asks("effects", "domain", "gradients")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    guard = facts.statement
    if not isinstance(guard, ast.If) or guard.orelse:
        return None
    leaves = len(guard.body) == 1 and isinstance(guard.body[0], ast.Return)
    block = facts.body_of(guard)
    if leaves and (block is not facts.function.body or not _is_none(guard.body[0])):
        return None
    guarded = block[block.index(guard) + 1 :] if leaves else guard.body
    if guarded and leaves and _is_none(guarded[-1]):
        guarded = guarded[:-1]
    within = {n for s in guarded for n in nodes_in(s)}
    inside = Uniform(facts, judged=within)
    inside.learn(guard.test, leaves)
    if not any(is_zero(element) for element in (*inside.known.values(), *inside.named.values())):
        return None
    if not any(isinstance(s, ast.Expr) and isinstance(s.value, ast.Call) for s in guarded):
        return None
    idle = Idle(inside)
    if (busy := idle.busy(guarded)) is not None:
        return refuse(NAME, f"`{shortened(busy)}` may change something where the mask picks nothing")
    within = {n for s in guarded for n in nodes_in(s)}
    if left := sorted(
        n.id for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id in idle.bound and n not in within
    ):
        return refuse(NAME, f"`{left[0]}` is bound as well, and read elsewhere")
    if found := effects_of_test(facts, guard.test):
        return refuse(NAME, found[0])
    if is_elif(facts.source, guard) or not replaceable(facts, [guard]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        if leaves:
            return [deletion(facts, guard)]
        return [replace_statements(facts.source, [guard], HOLE.format(0) + "\n", guard.body)]

    raises = (
        f"what is stored without `if {shortened(guard.test)}` raises for another shape or dtype, or a leaf, there too"
    )
    differences = [
        Difference("evaluation", f"what `if {shortened(guard.test)}` guards is evaluated where nothing is picked"),
        Difference("exception", raises),
        *idle.differences,
        *idle.taken,
    ]
    if recorded(facts, guard):
        says = "what is stored to asks for gradients even where the mask picks nothing"
        differences += [Difference("gradients", says), Difference("zero-gradients", says)]
    return offer(NAME, "leave out the question whether anything is picked", facts, make, differences)


def _is_none(statement: ast.stmt) -> bool:
    match statement:
        case ast.Return(value=None | ast.Constant(value=None)):
            return True
    return False
