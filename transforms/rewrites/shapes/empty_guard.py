"""Leave out the question whether any positions were found, where nothing is done if there are none.

Before:
    at, rows = torch.where(mask)
    if rows.numel() > 0:
        out.index_add_(0, rows, self.layer(x[rows]))

After:
    at, rows = torch.where(mask)
    out.index_add_(0, rows, self.layer(x[rows]))

Legal when:
    all that lives on from what the question guards (the block, or the rest of a loop's body behind `continue`) is added
    or stored at those positions, and nothing of it is known to raise for nothing, such as a maximum.

Differs in:
    what is guarded is called on nothing where nothing was found; parameters that it uses get zeros for gradients
    instead of None. Code that is not known may then change something, or raise.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import writes
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.text_edits import HOLE, delete, merged_edit, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.empty_effects import (
    EmptyEffect,
    HasEffectError,
    asks_if_any,
    asks_if_empty,
    asks_if_none,
    asks_if_some,
    index_source,
)
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "empty_guard"
_DIFFERENCES = (
    Difference("evaluation", "what the question guards is called on nothing where nothing was found"),
    Difference("exception", "it raises there what does not depend on how many were found, as for another dtype"),
    Difference("zero-gradients", "parameters that it uses get zeros for gradients there instead of None"),
)


@asks("effects", "memory", "order")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    block = facts.body_of(statement)
    behind = block[block.index(statement) + 1 :]
    guard: ast.If | None = None
    if isinstance(statement, ast.If):
        leaves = len(statement.body) == 1 and isinstance(statement.body[0], ast.Continue)
        mask = (asks_if_none if leaves else asks_if_some)(facts, statement.test)
        if mask is None:
            return None
        guard, names = statement, {mask}
    elif isinstance(statement, ast.Assign) and index_source(facts, statement.value) is not None:
        names = writes(*statement.targets)
        guard = next((s for s in behind if isinstance(s, ast.If) and _asks(s, names)), None)
        if guard is None or any(names & writes(s) for s in behind[: behind.index(guard)]):
            return None
        leaves = asks_if_empty(guard.test, names)
        behind = behind[behind.index(guard) + 1 :]
    else:
        return None
    if not (replaceable(facts, [guard]) and begins_line(facts.source, guard)) or guard.orelse:
        return refuse(NAME, "the question has another side, or shares its line with another statement")
    loop = facts.parent(guard)
    if leaves and not (isinstance(loop, (ast.For, ast.While)) and guard in loop.body):
        return refuse(NAME, "the question leaves more than the body of its loop")
    guarded = behind if leaves else guard.body

    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Name) and _picks(guarded, names):
        return refuse(NAME, "what the question guards picks elements, which is mended under it")

    def finds(target: ast.expr, value: ast.expr) -> bool:
        place = index_source(facts, value)
        return isinstance(place, ast.Name) and place.id in names

    effect = EmptyEffect(facts, names, finds)
    try:
        effect.take(guarded)
        effect.check_ends(loop if leaves and isinstance(loop, ast.stmt) else guard, guarded)
    except HasEffectError as error:
        return refuse(NAME, str(error))

    def make() -> list[TextEdit]:
        if leaves:
            return [delete(facts.source, guard)]
        return [
            merged_edit(
                facts.source, guard, [replace_statements(facts.source, [guard], HOLE.format(0) + "\n", guard.body)]
            )
        ]

    title, differs = "leave out the question whether anything was found", [*_DIFFERENCES, *effect.differences()]
    return offer(NAME, title, facts, make, differs, leaves_size=isinstance(statement, ast.Assign))


def _picks(statements: list[ast.stmt], masks: set[str]) -> bool:
    """Is something read by one of some masks? How many elements there are is data, where nothing else changes."""
    found = (n for s in statements for n in nodes_in(s) if isinstance(n, ast.Subscript))
    indices = (n.slice for n in found if isinstance(n.ctx, ast.Load))
    parts = (part for index in indices for part in (index.elts if isinstance(index, ast.Tuple) else [index]))
    return any(isinstance(part, ast.Name) and part.id in masks for part in parts)


def _asks(guard: ast.If, names: set[str]) -> bool:
    if asks_if_empty(guard.test, names):
        return len(guard.body) == 1 and isinstance(guard.body[0], ast.Continue)
    return asks_if_any(guard.test, names)
