"""Write what follows a side that always leaves behind the branch instead of in its `else`; where leaving is all that it
does, inside a branch that asks the opposite.

Before:
    if n > 10:
        return x / n
    elif n < 1:
        return torch.zeros_like(x)
    return x

After:
    if n > 10:
        return x / n
    if n < 1:
        return torch.zeros_like(x)
    return x

    # if self.ready: return
    # self.scale.copy_(x.std())
    if not self.ready:
        self.scale.copy_(x.std())

Legal when:
    one side of a branch on a tensor ends in `return`, `raise`, `break` or `continue` on every path, the other does not,
    and there is something behind the branch that goes on. Or the branch does nothing but `continue` in its loop, or
    `return` without a value, and what follows it to the end of the loop's body, or of the function, leaves nowhere.

Differs in:
    nothing: the same statements run in the same order. It is written for the mends of branches, and stays where they
    remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import always_leaves
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.respelled import spell

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "guard_clause"
LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Raise)


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.If):
        return None
    if (rest := _skipped(facts, statement)) and depends(facts, statement.test):
        return _inside(facts, statement, rest)
    while isinstance(above := facts.parent(statement), ast.If) and above.orelse == [statement] and _leaves_once(above):
        statement = above
    if not _leaves_once(statement) or not depends(facts, statement.test):
        return None
    text, kept = _flat(Code(facts.source), statement)
    return spell(NAME, "write the `else` behind the branch", facts, statement, text, *kept)


def _skipped(facts: FunctionFacts, statement: ast.If) -> list[ast.stmt]:
    """What a branch that only leaves skips: all of its block that is behind it."""
    match statement:
        case ast.If(body=[ast.Continue()], orelse=[]):
            around = isinstance(facts.parent(statement), (ast.For, ast.While))
        case ast.If(body=[ast.Return(value=None | ast.Constant(value=None))], orelse=[]):
            around = facts.parent(statement) is facts.function
        case _:
            return []
    block = facts.body_of(statement)
    rest = block[block.index(statement) + 1 :]
    leaves = any(isinstance(n, (*LEAVES, ast.Yield, ast.YieldFrom)) for s in rest for n in nodes_in(s))
    return rest if around and not leaves else []


def _inside(facts: FunctionFacts, statement: ast.If, rest: list[ast.stmt]) -> Fix | Refusal:
    """A guard that only leaves, and what it skips, as a branch."""
    if not replaceable(facts, [statement, *rest]):
        return refuse(NAME, "the statement shares its line with another one")
    test, code = statement.test, Code(facts.source)
    opposite = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    asked = code.line(test.operand) if isinstance(test, ast.UnaryOp) and opposite else f"not {code.operand(test)}"
    text = f"if {asked}:\n    {HOLE.format(0)}\n"

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [statement, *rest], text, rest)]

    return prepare(NAME, "write what a guard skips inside a branch", facts, make)


def _leaves_once(statement: ast.If) -> bool:
    """Does one side of a branch always leave, and the other not, so that it need not stand in an `else`?"""
    if not statement.orelse:
        return False
    return always_leaves(statement.body) != always_leaves(statement.orelse)


def _flat(code: Code, statement: ast.If) -> tuple[str, list[list[ast.stmt]]]:
    """The text of a branch and of those in its `else` behind one another, and the statements that fill its holes."""
    lines: list[str] = []
    kept: list[list[ast.stmt]] = []
    rest: list[ast.stmt] = [statement]
    while len(rest) == 1 and isinstance(one := rest[0], ast.If) and _leaves_once(one):
        first = always_leaves(one.body)
        test = code.line(one.test) if first else f"not {code.operand(one.test)}"
        lines += [f"if {test}:", f"    {HOLE.format(len(kept))}"]
        kept.append(one.body if first else one.orelse)
        rest = one.orelse if first else one.body
    lines.append(HOLE.format(len(kept)))
    return "\n".join(lines) + "\n", [*kept, rest]
