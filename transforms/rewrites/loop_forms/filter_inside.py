"""Ask inside a loop what the comprehension asks that it runs over.

Before:
    for t in [t for t in xs if t.norm() > 1]:
        out = out + t

After:
    for t in xs:
        if t.norm() > 1:
            out = out + t

Legal when:
    the loop runs over a list that only filters another one, by tests on tensors without effects, and names its elements
    alike. The body binds nothing that the filter or the list reads, stores nowhere and changes no memory that they may
    read; the filter calls no function of which that is not known. The loop is not left early, and its variable is not
    read behind it.

Differs in:
    a filter that raises does so when some iterations have run. It is written for the mends of branches, and stays where
    they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import alive, reads, stored, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.loop_ends import runs_again
from graphmend.transforms.if_conversion.value_tests import depends, effects_of_test
from graphmend.transforms.legality.effects import effects, is_layer
from graphmend.transforms.legality.memory import may_share
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.totality import may_raise
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "filter_inside"
_LEAVES = (ast.Return, ast.Break, ast.Continue)


@asks("effects", "totality", "memory", "order", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    loop = facts.statement
    match loop:
        case ast.For(
            target=ast.Name(id=name),
            iter=(
                ast.ListComp(
                    elt=ast.Name(id=element),
                    generators=[ast.comprehension(target=ast.Name(id=each), iter=values, ifs=tests, is_async=0)],
                )
                | ast.GeneratorExp(
                    elt=ast.Name(id=element),
                    generators=[ast.comprehension(target=ast.Name(id=each), iter=values, ifs=tests, is_async=0)],
                )
            ),
        ) if name == element == each and any(depends(facts, test) for test in tests):
            pass
        case _:
            return None
    if reason := _why_not(facts, loop, name, values, tests):
        return refuse(NAME, reason)
    if not runs_again(facts, values):
        return refuse(NAME, f"`{ast.unparse(values)}` may be used up by the loop")
    code = Code(facts.source)
    asked = " and ".join(code.operand(t) if isinstance(t, (ast.BoolOp, ast.IfExp)) else code.line(t) for t in tests)
    asked = code.line(tests[0]) if len(tests) == 1 else asked
    lines = f"for {name} in {code.line(values)}:\n    if {asked}:\n        {HOLE.format(0)}\n"
    eager = isinstance(loop.iter, ast.ListComp)
    return prepare(
        NAME,
        "ask inside the loop what filters its list",
        facts,
        lambda: [replace_statements(facts.source, [loop], lines, loop.body)],
        may_raise(facts, *tests) if eager else [],
    )


def _why_not(facts: FunctionFacts, loop: ast.For, name: str, values: ast.expr, tests: list[ast.expr]) -> str | None:
    """Why tests cannot be asked one by one, between the iterations of a loop."""
    if loop.orelse or any(isinstance(n, _LEAVES) for s in loop.body for n in nodes_in(s)):
        return "the loop is left early"
    if not replaceable(facts, [loop]):
        return "the statement shares its line with another one"
    if alive(facts, name, loop):
        return f"`{name}` is read behind the loop"
    found = [one for test in tests for one in effects_of_test(facts, test)]
    if found:
        return found[0]
    if unknown := next((n for test in tests for n in nodes_in(test) if _is_unknown(facts, n)), None):
        return f"`{shortened(unknown)}` may read what the loop changes"
    read = reads(values, *tests) | {name}
    if stored(loop.body) & read or any(writes(test) for test in tests):
        return "the loop binds what its filter reads"
    for statement in (n for s in loop.body for n in nodes_in(s) if isinstance(n, ast.stmt)):
        if reason := _changes(facts, statement, read):
            return reason
    return None


def _is_unknown(facts: FunctionFacts, node: ast.AST) -> bool:
    """Does a node call a function of which nothing says what it reads?"""
    if not isinstance(node, ast.Call) or is_layer(facts, node.func):
        return False
    folder = (qualified(facts, node.func) or "").rpartition(".")[0]
    return folder not in (*known.FUNCTIONAL, "builtins", "math")


def _changes(facts: FunctionFacts, statement: ast.stmt, read: set[str]) -> str | None:
    """Why a statement of the loop may change what its filter reads, or the list."""
    match statement:
        case ast.AugAssign(target=ast.Name() as target, value=value):
            if any(may_share(facts, target, ast.Name(n, ast.Load())) for n in sorted(read)):
                return f"`{ast.unparse(statement)}` may change what the filter reads"
            return next(iter(effects(facts, value)), None)
        case ast.Assign(targets=targets, value=value) if all(_binds_names(t) for t in targets):
            return next(iter(effects(facts, value)), None)
        case ast.If(test=test):
            return next(iter(effects_of_test(facts, test)), None)
        case ast.Pass():
            return None
    return f"`{ast.unparse(statement).splitlines()[0]}` may change what the filter reads"


def _binds_names(target: ast.expr) -> bool:
    """Does a target bind names alone, and store nowhere?"""
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(_binds_names(part) for part in target.elts)
    return isinstance(target, ast.Name)
