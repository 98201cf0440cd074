"""Leave a loop where the flag is set that ends it.

Before:
    accepted = False
    while not accepted and step > 0.1:
        new = x - step * g
        if energy(new) < energy(x):
            accepted = True
        else:
            step = step * 0.5

After:
    accepted = False
    while step > 0.1:
        new = x - step * g
        if energy(new) < energy(x):
            break
        step = step * 0.5

Legal when:
    the loop's test is a conjunction of which one part asks a local name, which holds the other answer when the loop is
    reached; the loop binds it once, to a constant, in a side of a branch that ends the loop's body, and reads it
    nowhere else. Other parts of the test have no effect.

Differs in:
    parts of the test in front of the flag are not evaluated once more when it is set, and do not raise then. It is
    written for the mends of loops, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bound_before
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import alive, locals_of
from graphmend.transforms.code.positions import begins_line, is_elif, replaceable
from graphmend.transforms.code.text_edits import HOLE, replace_expression, replace_statements
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.loop_ends import conjuncts
from graphmend.transforms.if_conversion.value_tests import depends
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "stop_flag"
_LEAVES = (ast.Return, ast.Break, ast.Continue)


class _Flag(NamedTuple):
    """A name that ends a loop."""

    name: str
    part: ast.expr
    """The part of the loop's test that asks it."""
    going: bool
    """What it is while the loop goes on."""


@asks("effects", "totality", "order", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    branch = facts.statement
    loop = facts.parent(branch)
    if not isinstance(branch, ast.If) or not isinstance(loop, ast.While) or not depends(facts, branch.test):
        return None
    parts = conjuncts(loop.test)
    flag = next((f for f in (_flag(p) for p in parts) if f is not None and _sets(branch, f) is not None), None)
    if flag is None:
        return None
    sets = _sets(branch, flag)
    assert sets is not None
    if loop.body[-1] is not branch or len(parts) < 2:
        return refuse(NAME, f"`{flag.name}` is not set last in the loop, or nothing else ends it")
    if reason := _why_not(facts, loop, branch, flag):
        return refuse(NAME, reason)
    others = [part for part in parts if part is not flag.part]
    found = speculate(facts, *others)
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    skipped = speculate(facts, *parts[: parts.index(flag.part)]).differences  # those in front of the flag, once less
    code = Code(facts.source)
    lines, kept = _left(facts, code, loop, branch, sets)

    def make() -> list[TextEdit]:
        test = " and ".join(code.operand(p) if isinstance(p, ast.BoolOp) else code.line(p) for p in others)
        return [
            replace_expression(facts.source, loop.test, test),
            replace_statements(facts.source, [branch], lines, *kept),
        ]

    return prepare(NAME, f"leave the loop where `{flag.name}` is set", facts, make, skipped)


def _flag(part: ast.expr) -> _Flag | None:
    match part:
        case ast.Name(id=name):
            return _Flag(name, part, True)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            return _Flag(name, part, False)
    return None


def _sets(branch: ast.If, flag: _Flag) -> ast.Assign | None:
    """The statement of a branch, at the top of one side, that sets a flag to the answer that ends the loop."""
    for statement in (*branch.body, *branch.orelse):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=bool(value))):
                if name == flag.name and value is not flag.going:
                    return statement
    return None


def _why_not(facts: FunctionFacts, loop: ast.While, branch: ast.If, flag: _Flag) -> str | None:
    """Why the loop cannot be left in the place of setting its flag."""
    if loop.orelse or any(isinstance(n, _LEAVES) for n in nodes_in(branch)):
        return "the loop is left in several ways"
    if not replaceable(facts, [branch]) or is_elif(facts.source, branch) or not begins_line(facts.source, loop):
        return "the statement shares its line with another one"
    if flag.name not in locals_of(facts.function):
        return f"`{flag.name}` is no local name"
    names = [n for n in nodes_in(loop) if isinstance(n, ast.Name) and n.id == flag.name]
    if len(names) != 2:
        return f"`{flag.name}` is read or bound elsewhere in the loop"
    before = bound_before(facts, loop, flag.name)
    if not isinstance(before, ast.Constant) or before.value is not flag.going:
        return f"`{flag.name}` is not known where the loop is reached"
    return None


def _left(
    facts: FunctionFacts, code: Code, loop: ast.While, branch: ast.If, sets: ast.Assign
) -> tuple[str, list[list[ast.stmt]]]:
    """The text of a branch that leaves the loop, and the statements that fill its holes."""
    first = sets in branch.body
    side, rest = (branch.body, branch.orelse) if first else (branch.orelse, branch.body)
    assert isinstance(sets.targets[0], ast.Name)
    lives = alive(facts, sets.targets[0].id, loop)
    done = [s for s in side if s is not sets or lives]
    lines = [f"if {code.line(branch.test) if first else f'not {code.operand(branch.test)}'}:"]
    kept: list[list[ast.stmt]] = []
    for part, indent in ((done, "    "), (rest, "")):
        if part is rest:
            lines.append("    break")
        if part:
            lines.append(f"{indent}{HOLE.format(len(kept))}")
            kept.append(part)
    return "\n".join(lines) + "\n", kept
