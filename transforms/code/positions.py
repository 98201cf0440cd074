"""Where a statement stands among the others of its lines."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.syntax.source import Source


def begins_line(source: Source, statement: ast.stmt) -> bool:
    """Is there only white space in front of a statement?"""
    line, column = first_position(source, statement)
    return not source.lines.line(line - 1)[:column].strip("\ufeff \t\f")


def is_elif(source: Source, statement: ast.stmt) -> bool:
    """Is an `if` statement written as the `elif` of another one?"""
    span = source.span(statement)
    return isinstance(statement, ast.If) and source.lines.line(span.line - 1)[span.column :].startswith("elif")


def replaceable(facts: FunctionFacts, old: Sequence[ast.stmt]) -> bool:
    """Can statements be replaced by others: do they have their lines to themselves, or stand alone behind a colon?"""
    source = facts.source
    line = source.lines.line((old[-1].end_lineno or old[-1].lineno) - 1)
    rest = line[source.span(old[-1]).end_column :].strip()
    if rest and not rest.startswith("#"):
        return False
    if begins_line(source, old[0]):
        return True
    block = facts.body_of(old[0])
    return is_elif(source, old[0]) or (len(block) == len(old) == 1 and not isinstance(facts.parent(old[0]), ast.Module))


def first_position(source: Source, statement: ast.stmt) -> tuple[int, int]:
    """(line, column) of a statement, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    span = source.span(decorators[0]) if decorators else source.span(statement)
    return span.line, span.column - bool(decorators)
