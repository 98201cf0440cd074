"""Store under a mask without asking whether the mask picks anything.

Before:
    if m.any():
        x[m] = 0

After:
    x[m] = 0

Legal when:
    the body only stores one number under the very mask that the test asks about.

Differs in:
    nothing: where the mask picks nothing, nothing is stored.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.edits import HOLE, is_elif, replace, replaceable
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.masked import is_mask
from graphmend.transforms.names import constant, is_tensor
from graphmend.transforms.offer import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "drop_guard"


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    match statement:
        case ast.If(test=ast.Call(func=ast.Attribute(value=mask, attr="any"), args=[], keywords=[]), orelse=[]):
            pass
        case ast.If(test=ast.Call(func=ast.Attribute(attr="any"), args=[mask], keywords=[]), orelse=[]):
            pass
        case _:
            return None
    if (
        not is_mask(facts, mask)
        or not isinstance(mask, ast.Name)
        or not all(_stores(facts, s, mask.id) for s in statement.body)
    ):
        return None
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        return [replace(facts.source, [statement], f"{HOLE.format(0)}\n", statement.body)]

    return offer(NAME, "store without asking first", facts, make)


def _stores(facts: FunctionFacts, statement: ast.stmt, mask: str) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=tensor, slice=ast.Name(id=name))], value=value):
            return name == mask and is_tensor(facts, tensor) and isinstance(constant(value), (bool, int, float))
    return False
