"""Index with a mask that is expanded to what it selects from instead of selecting by it.

Before:
    a = torch.masked_select(x, m)
    b = torch.masked_select(y, m)

After:
    picked = m.expand_as(x)
    a = x[picked]
    b = y[picked]

Legal when:
    `masked_select` may broadcast the mask, which is known to have no more dimensions than what it selects from; both
    only compute, and are always evaluated. What selects by the same mask behind it is indexed by the same one.

Differs in:
    a mask of more elements than what it selects from raises. It is written for the mends of masks, and stays where they
    remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import always_evaluated
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import fresh, reads, stored
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.text_edits import insert_before, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.rows.masked_elements import Picked, is_mask, missing_dimensions, picked, selected
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "expanded_mask"


@asks("effects", "memory", "domain", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    node, found = facts.node, selected(facts, facts.node)
    if found is None or picked(facts, node) is not None or not isinstance(node, ast.expr):
        return None
    tensor, mask = found
    if (missing_dimensions(facts, found) or 0) < 0:
        return refuse(NAME, f"`{shortened(mask)}` has more dimensions than what it selects from")
    if not repeatable(facts, tensor, mask):
        return refuse(NAME, f"`{shortened(node)}` does more than compute")
    if not (begins_line(facts.source, facts.statement) and always_evaluated(facts, node)):
        return refuse(NAME, f"`{shortened(node)}` is not always evaluated")
    others = _alike(facts, mask)
    differences = [Difference("exception", "a mask of more elements than what it selects from raises")]
    if others:
        differences.append(Difference("exception", "what one mask selects from is taken to have one shape, or raises"))
    if not is_mask(facts, mask):
        differences.append(Difference("exception", f"`{shortened(mask)}` that is not of bools raises no more"))

    def make() -> list[TextEdit]:
        code, name = Code(facts.source), fresh(facts, "picked")
        of = code.operand(mask) + ("" if is_mask(facts, mask) else ".bool()")
        like, lines = code.text(tensor), []
        if not isinstance(tensor, ast.Name):
            like = fresh(facts, "values")
            lines = [f"{like} = {code.line(tensor)}\n"]
        lines.append(f"{name} = {of}.expand_as({like})\n")
        edits = [insert_before(facts.source, facts.statement, "".join(lines))]
        texts = {node: f"{like}[{name}]", **{n: f"{code.operand(o.tensor)}[{name}]" for n, o in others.items()}}
        return [*edits, *(replace_expression(facts.source, n, text) for n, text in texts.items())]

    return prepare(NAME, "index with the mask instead of selecting by it", facts, make, differences)


def _alike(facts: FunctionFacts, mask: ast.expr) -> dict[ast.expr, Picked]:
    """What else is selected by the same mask behind the statement of the finding, in the block around it."""
    block = facts.body_of(facts.statement)
    found: dict[ast.expr, Picked] = {}
    if changed_in_place(facts, mask, behind=facts.statement):
        return found
    for statement in block[block.index(facts.statement) :]:
        for node in nodes_in(statement):
            other = selected(facts, node) if isinstance(node, ast.expr) and node is not facts.node else None
            if other is not None and isinstance(node, ast.expr) and ast.unparse(other.mask) == ast.unparse(mask):
                found[node] = other
        if stored([statement]) & reads(mask):
            break
    return found
