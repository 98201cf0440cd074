"""A statement in another form that means the same, for other mends to work on."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.rewrites.answers import prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.fix import Fix, Refusal


def spell(
    rewrite: str, title: str, facts: FunctionFacts, statement: ast.stmt, text: str, *kept: Sequence[ast.stmt]
) -> Fix | Refusal:
    """A fix that prepares by writing a statement in another form; `kept[i]` fills the hole number i of its text."""
    if not replaceable(facts, [statement]) or is_elif(facts.source, statement):
        return refuse(rewrite, "the statement shares its line with another one")
    return prepare(rewrite, title, facts, lambda: [replace_statements(facts.source, [statement], text, *kept)])
