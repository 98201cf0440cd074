"""Leave the statement out while compiled: what it does is then lost, and the title says so.

Before:
    logger.debug("y %s", y)

After:
    if not torch.compiler.is_compiling():
        logger.debug("y %s", y)

Legal when:
    the statement is a call whose result is not used, or an assignment outside every local name, and nothing
    later in the function can read what it did.

Differs in:
    nothing happens while compiled, nor is anything drawn for it alone; plain Python stays as it is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.outside.kept_records import NoticedError, check_unnoticed
from graphmend.transforms.legality.outside.listeners import callers, told
from graphmend.transforms.legality.randomness.kept_draws import left_out
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse, show
from graphmend.transforms.rewrites.output.emit import (
    ATTRIBUTED,
    OUTPUT,
    SETTERS,
    attributed,
    handled,
    is_emitted,
    outward,
    receiver,
)

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "guard"


@asks("random", "order", "context", "names", leaves_names=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    reason = _needed(finding, facts, statement)
    if reason is not None:
        return refuse(NAME, reason) if reason else None
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        test = imports.name("torch.compiler.is_compiling")
        new = f"if not {test}():\n    {HOLE.format(0)}\n"
        return [*imports.edits(), replace_statements(facts.source, [statement], new, [statement])]

    silences = finding.code in OUTPUT
    title, difference = "skip it while compiled", Difference("state", "nothing happens here while compiled")
    if silences:
        title, difference = (
            "skip it while compiled (silences it there)",
            Difference("output", "nothing is written while compiled"),
        )
        if isinstance(statement, ast.Expr) and (setter := _setter(statement.value)) is not None:
            difference = Difference("state", f"`{setter}` sets nothing while compiled: later output may differ")
    if finding.code == "GM206":
        return show(NAME, title, facts, make, "the debugger does not stop here while compiled")
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and attributed(facts, statement.value):
        return show(NAME, title, facts, make, ATTRIBUTED.says)
    differences = [difference, *left_out(facts, statement)]
    if fails := handled(facts):
        differences.append(Difference("exception", f"while compiled, what `{fails}` raises reaches no handler"))
    return offer(NAME, title, facts, make, differences, silences=silences)


@answers("order")
def _needed(finding: Finding, facts: FunctionFacts, statement: ast.stmt) -> str | None:
    """Why a statement cannot be left out; "" where that would not be sensible to say, None where it can be."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        if is_emitted(facts, statement.value):
            return ""
        if finding.code in OUTPUT and (changed := told(facts)) is not None:
            return f"code that output runs changes `{changed}`, which is read here"
        if finding.code in (*OUTPUT, "GM206"):
            return None
        if outward(facts, statement.value):
            return _noticed(facts, statement, statement.value)
        return f"code of the region may read what `{ast.unparse(statement.value.func)}` changes"
    if isinstance(statement, ast.Assign) and all(
        isinstance(t, (ast.Attribute, ast.Subscript)) for t in statement.targets
    ):
        outside = all((qualified(facts, _root(t)) or "").startswith("os.environ") for t in statement.targets)
        return None if outside else "the code that follows may read what is assigned"
    return ""


def _noticed(facts: FunctionFacts, statement: ast.stmt, call: ast.Call) -> str | None:
    """Where what is traced asks a record for what would be missing in it."""
    if (record := receiver(facts, call)) is None:
        return None
    try:
        check_unnoticed(facts, record, statement)
    except NoticedError as error:
        return str(error)
    for caller in callers(facts):
        if any(isinstance(n, ast.Name) and n.id == record.id for n in nodes_in(caller)):
            return f"`{caller.name}` reads or changes `{record.id}`, and calls this"
    return None


def _setter(call: ast.expr) -> str | None:
    """The function that is called, where it writes nothing and decides what is written later."""
    match call:
        case ast.Call(func=ast.Attribute(attr=attr) as function) if attr in SETTERS:
            return ast.unparse(function)
    return None


def _root(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node
