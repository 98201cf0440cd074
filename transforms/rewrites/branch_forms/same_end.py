"""Give what every side of a branch appends to one list a name, and append that behind the branch.

Before:
    if v > threshold:
        hold = 3
        out.append(1.0)
    else:
        out.append(0.0)

After:
    if v > threshold:
        hold = 3
        item = 1.0
    else:
        item = 0.0
    out.append(item)

Legal when:
    each side, and each side of a branch that a side ends in, ends by appending to the same list, which has a local name
    that the branch does not bind.

Differs in:
    nothing. It is written for the mends of branches, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Container
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, stored
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import insert_after, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "same_end"


@asks("names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    branch = facts.statement
    if not isinstance(branch, ast.If) or not depends(facts, branch.test):
        return None
    while is_elif(facts.source, branch) and isinstance(above := facts.parent(branch), ast.If):
        branch = above
    ends = _ends([branch])
    lists = {} if ends is None else {_appended(end): end for end in ends}
    if ends is None or len(lists) != 1 or (name := next(iter(lists))) is None:
        return None
    value = facts.before(branch).get(name)
    if not (isinstance(value, Container) and value.kind == "list") or name in stored([branch]):
        return refuse(NAME, f"`{name}` is not known to be one list")
    if not all(replaceable(facts, [end]) for end in (branch, *ends)):
        return refuse(NAME, "a statement shares its line with another one")
    code, item = Code(facts.source), fresh(facts, "item")

    def make() -> list[TextEdit]:
        edits = []
        for end in ends:
            assert isinstance(end, ast.Expr)
            assert isinstance(end.value, ast.Call)
            edits.append(replace_statements(facts.source, [end], f"{item} = {code.line(end.value.args[0])}\n"))
        return [*edits, insert_after(facts.source, branch, f"{name}.append({item})\n")]

    return prepare(NAME, f"append to `{name}` behind the branch", facts, make)


def _ends(statements: Sequence[ast.stmt]) -> list[ast.stmt] | None:
    """The last statements of every path through a block; None where a path has none of its own."""
    last = statements[-1] if statements else None
    if not isinstance(last, ast.If):
        return [last] if last is not None else None
    sides = [_ends(last.body), _ends(last.orelse)]
    return None if sides[0] is None or sides[1] is None else [*sides[0], *sides[1]]


def _appended(statement: ast.stmt) -> str | None:
    """The name of the list that a statement appends one thing to."""
    match statement:
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[one], keywords=[])
        ) if not isinstance(one, ast.Starred):
            return name
    return None
