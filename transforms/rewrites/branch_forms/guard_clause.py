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

    # if self.training:
    #     if torch.rand([]) < 0.1: continue
    # x = layer(x)
    if self.training:
        if not torch.rand([]) < 0.1:
            x = layer(x)
    else:
        x = layer(x)

Legal when:
    one side of a branch on a tensor ends in `return`, `raise`, `break` or `continue` on every path, the other does not,
    and there is something behind the branch that goes on. Or the branch ends in `continue` in its loop, or in `return`
    without a value, and what follows it to the end of the loop's body, or of the function, leaves nowhere. It may be
    the last statement of a branch without `else`, whose test is known while tracing, where few statements follow that.

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
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.rewrites.answers import asks, prepare, refuse
from graphmend.transforms.rewrites.respelled import spell

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "guard_clause"
_FEW = 4
"""Statements that may be written twice."""
LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Raise)


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.If):
        return None
    if depends(facts, statement.test) and (rest := _skipped(facts, statement)):
        return _inside(facts, statement, rest)
    if depends(facts, statement.test) and (rest := _skipped_behind(facts, statement)):
        return _in_both(facts, statement, rest)
    while isinstance(above := facts.parent(statement), ast.If) and above.orelse == [statement] and _leaves_once(above):
        statement = above
    if not _leaves_once(statement) or not depends(facts, statement.test):
        return None
    text, kept = _flat(Code(facts.source), statement)
    return spell(NAME, "write the `else` behind the branch", facts, statement, text, *kept)


def _skipped(facts: FunctionFacts, statement: ast.If) -> list[ast.stmt]:
    """What a branch skips that leaves at its end, and nowhere else: all of its block that is behind it."""
    return _behind(facts, statement) if _ends(facts, statement, facts.parent(statement)) else []


def _skipped_behind(facts: FunctionFacts, statement: ast.If) -> list[ast.stmt]:
    """The same where the branch is the last statement of another one, which is decided while tracing."""
    above = facts.parent(statement)
    if not isinstance(above, ast.If) or above.body[-1] is not statement or above.orelse or depends(facts, above.test):
        return []
    rest = _behind(facts, above) if _ends(facts, statement, facts.parent(above)) else []
    # a warning is shown once for each place in the text
    functions = (n for s in rest for n in nodes_in(s) if isinstance(n, (ast.Name, ast.Attribute)))
    warns = any(qualified(facts, n) == "warnings.warn" for n in functions)
    return rest if not _leaves(above.body[:-1]) and len(rest) <= _FEW and not warns else []


def _ends(facts: FunctionFacts, statement: ast.If, around: ast.AST | None) -> bool:
    """Does a branch do nothing behind its last statement that leaves what is around it?"""
    match statement:
        case ast.If(body=[*first, ast.Continue()], orelse=[]):
            return isinstance(around, (ast.For, ast.While)) and not _leaves(first)
        case ast.If(body=[*first, ast.Return(value=None | ast.Constant(value=None))], orelse=[]):
            return around is facts.function and not _leaves(first)
    return False


def _behind(facts: FunctionFacts, statement: ast.stmt) -> list[ast.stmt]:
    """What stands behind a statement in its block, where that leaves nowhere."""
    block = facts.body_of(statement)
    rest = block[block.index(statement) + 1 :]
    return [] if _leaves(rest) else rest


def _leaves(statements: list[ast.stmt]) -> bool:
    return any(isinstance(n, (*LEAVES, ast.Yield, ast.YieldFrom)) for s in statements for n in nodes_in(s))


def _inside(facts: FunctionFacts, statement: ast.If, rest: list[ast.stmt]) -> Fix | Refusal:
    """A guard that only leaves, and what it skips, as a branch."""
    if not replaceable(facts, [statement, *rest]):
        return refuse(NAME, "the statement shares its line with another one")
    text, kept = _guarded(facts, statement, rest)

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [statement, *rest], text, *kept)]

    return prepare(NAME, "write what a guard skips inside a branch", facts, make)


def _in_both(facts: FunctionFacts, statement: ast.If, rest: list[ast.stmt]) -> Fix | Refusal:
    """A guard inside a branch that is decided while tracing: what it skips is written in both sides of that."""
    above = facts.parent(statement)
    assert isinstance(above, ast.If)
    if not replaceable(facts, [above, *rest]) or is_elif(facts.source, above):
        return refuse(NAME, "the statement shares its line with another one")
    text, kept = _guarded(facts, statement, rest)
    first = above.body[:-1]
    lines = [f"if {Code(facts.source).line(above.test)}:"]
    lines += [f"    {HOLE.format(len(kept))}"] if first else []
    lines += [f"    {line}" for line in text.splitlines()]
    lines += ["else:", f"    {HOLE.format(len(kept) + bool(first))}"]
    filled = [*kept, *([first] if first else []), rest]

    def make() -> list[TextEdit]:
        return [replace_statements(facts.source, [above, *rest], "\n".join(lines) + "\n", *filled)]

    return prepare(NAME, "write what a guard skips in both sides of a branch", facts, make)


def _guarded(facts: FunctionFacts, statement: ast.If, rest: list[ast.stmt]) -> tuple[str, list[list[ast.stmt]]]:
    """A guard and what it skips as a branch, and the statements that fill its holes."""
    test, code, first = statement.test, Code(facts.source), statement.body[:-1]
    if first:
        return f"if {code.line(test)}:\n    {HOLE.format(0)}\nelse:\n    {HOLE.format(1)}\n", [first, rest]
    opposite = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    asked = code.line(test.operand) if isinstance(test, ast.UnaryOp) and opposite else f"not {code.operand(test)}"
    return f"if {asked}:\n    {HOLE.format(0)}\n", [rest]


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
