"""What stays of code once no question whether there are any rows stands around it: it runs without rows, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.legality.effects import effects

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def seen_without_rows(facts: FunctionFacts, kept: Sequence[ast.stmt], section: Sequence[ast.stmt]) -> str | None:
    """Which of the statements that are kept would be seen to run where there are no rows: whatever does more than bind
    names that the section alone uses, and binds before it reads them. A sentence; None where none would be.
    """
    inside = {n for s in section for n in nodes_in(s)}
    places: dict[str, list[ast.Name]] = {}
    for node in nodes_in(facts.function):
        if isinstance(node, ast.Name):
            places.setdefault(node.id, []).append(node)
    for statement in kept:
        if isinstance(statement, ast.Pass) or (
            isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        ):
            continue
        names = [*_bound(statement)]
        own = all(
            name not in reads(statement)
            and inside.issuperset(places[name])
            and isinstance(min(places[name], key=lambda n: (n.lineno, n.col_offset)).ctx, ast.Store)
            for name in names
        )
        if not (names and own) or effects(facts, statement):
            return f"`{shortened(statement)}` would run without rows, too"
    return None


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that an assignment binds; none where it is something else, or binds more."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            yield name
        case ast.Assign(targets=[ast.Tuple(elts=elements)]) if all(isinstance(e, ast.Name) for e in elements):
            yield from (e.id for e in elements if isinstance(e, ast.Name))
