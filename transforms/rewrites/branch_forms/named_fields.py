"""Let a branch bind local names for the fields of objects, and for the names of outer functions and of the module, that
it stores to, and store these behind it.

Before:
    if loss < self.best:
        self.best = loss

After:
    held_best = self.best
    if loss < held_best:
        held_best = loss
    self.best = held_best

Legal when:
    the objects are of classes in sight whose `__init__` gives them these fields, and which run no code where a field is
    read or stored; outer names are bound before the function is called. The branch leaves nothing early, and between
    its stores nothing runs that may look at the objects or names: it calls torch's functions and Python's own. No other
    object's field of the same name is in it.

Differs in:
    what was stored before something in the branch raises stays as it was. It is written for the mends that
    select values of names, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import HELD
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.text_edits import insert_after, insert_before, merged_edit, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.branch_statement import branch
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.objects.stored_places import Place, stored_places, why_not_named
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "named_fields"


@asks("effects", "memory", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = branch(facts)
    if statement is None or not depends(facts, statement.test):
        return None
    places = stored_places(facts, statement)
    if not places:
        return None
    if (
        not replaceable(facts, [statement])
        or is_elif(facts.source, statement)
        or not begins_line(facts.source, statement)
    ):
        return refuse(NAME, "the statement shares its line with another one")
    reason = next(iter(effects_of_test(facts, statement.test)), None) or why_not_named(facts, statement, places)
    if reason is not None:
        return refuse(NAME, reason)
    taken, names = list[str](), dict[str, str]()
    for target in places:
        if (place := ast.unparse(target)) not in names:
            name = target.attr if isinstance(target, ast.Attribute) else target.id
            names[place] = fresh(facts, f"{HELD}{name}", taken)
            taken.append(names[place])
    said = ", ".join(f"`{place}`" for place in names)
    last = all(_stores_last(side) for side in (statement.body, statement.orelse))
    differences = [] if last else [Difference("exception", f"where the branch raises, {said} stays as it was")]

    def make() -> list[TextEdit]:
        source = facts.source
        read = "".join(f"{name} = {place}\n" for place, name in names.items())
        written = "".join(f"{place} = {name}\n" for place, name in names.items())
        fields = [n for n in nodes_in(statement) if isinstance(n, Place) and ast.unparse(n) in names]
        inside = [replace_expression(source, n, names[ast.unparse(n)]) for n in fields]
        whole = [insert_before(source, statement, read), *inside, insert_after(source, statement, written)]
        return [merged_edit(source, statement, whole)]

    return prepare(NAME, f"name {said} in the branch", facts, make, differences)


def _stores_last(side: Sequence[ast.stmt]) -> bool:
    """Is the one store of a side the last that it does?"""
    *front, last = side or [ast.Pass()]
    targets = [n for s in front for n in nodes_in(s) if isinstance(n, Place) and isinstance(n.ctx, ast.Store)]
    if targets:
        return False
    if isinstance(last, ast.If):
        return _stores_last(last.body) and _stores_last(last.orelse)
    return not (isinstance(last, ast.Assign) and (len(last.targets) > 1 or isinstance(last.targets[0], ast.Tuple)))
