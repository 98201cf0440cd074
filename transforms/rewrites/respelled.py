"""A statement, or the call of a lambda, in another form that means the same, for other mends to work on."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import locals_of
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


def inlined(facts: FunctionFacts, function: ast.expr, call: ast.Call) -> str | None:
    """The text of what a lambda gives for the arguments of a call; None where it is none, or more than an expression of
    names.
    """
    if not isinstance(function, ast.Lambda) or call.keywords or not all(is_plain(a) for a in call.args):
        return None
    given, body = function.args, function.body
    if given.vararg or given.kwarg or given.kwonlyargs or given.defaults or len(given.args) != len(call.args):
        return None
    scopes = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr)
    if any(isinstance(n, scopes) for n in nodes_in(body)):
        return None
    values = {a.arg: v for a, v in zip(given.args, call.args, strict=True)}
    names = [n for n in nodes_in(body) if isinstance(n, ast.Name)]
    if function not in nodes_in(facts.function) and any(
        n.id not in values and n.id in locals_of(facts.function) for n in names
    ):
        return None
    code = Code(facts.source)
    return f"({code.line(body, {n: code.operand(values[n.id]) for n in names if n.id in values})})"


def is_plain(node: ast.expr) -> bool:
    return isinstance(node, (ast.Name, ast.Constant))
