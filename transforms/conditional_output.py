"""Emit output that depends on a tensor: the condition goes along, and eager code asks it.

Before:
    if y.sum() > 0:
        print("positive", y)

After:
    graphmend.runtime.emit(lambda condition, *values: print(*values) if condition else None, y.sum() > 0, "positive", y)

Legal when:
    both sides begin with output calls (print, logging, warnings) whose arguments only compute. What stands behind
    them stays in the branch, to be mended next.

Differs in:
    the arguments are computed even when nothing is written.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.bindings import fresh
from graphmend.transforms.code import Code
from graphmend.transforms.edits import HOLE, is_elif, replace, replaceable
from graphmend.transforms.emit import attributed
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.imports import Imports
from graphmend.transforms.legality import speculate
from graphmend.transforms.names import constant, qualified
from graphmend.transforms.offer import offer, refuse
from graphmend.transforms.predicate import NotATensorError, Predicates, split
from graphmend.transforms.where import branch

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "conditional_output"
_RUNTIME = "graphmend.runtime"
_LEVELS = ["debug", "info", "warning", "warn", "error", "critical", "log", "warning_once", "warning_advice"]


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = branch(facts)
    if statement is None:
        return None
    taken, other = _leading(facts, statement.body), _leading(facts, statement.orelse)
    calls = [*taken, *other]
    if not calls or (statement.orelse and is_elif(facts.source, statement.orelse[0])):
        return None
    if any(isinstance(a, ast.Starred) for c in calls for a in c.args):
        return refuse(NAME, "the arguments of the output are not written one by one")
    if any(constant(k.value) is None for c in calls for k in c.keywords) or any(attributed(facts, c) for c in calls):
        return refuse(NAME, "the output is directed by more than constants")
    static, tests = split(facts, statement.test)
    found = speculate(facts, *(a for c in calls for a in c.args))
    if static or not tests or found.blockers:
        return refuse(NAME, found.blockers[0] if found.blockers else "the test is not about tensors alone")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        test = " & ".join(predicates.operand(t) for t in tests) if len(tests) > 1 else predicates.of(tests[0])
    except NotATensorError as error:
        return refuse(NAME, str(error))

    def make() -> list[TextEdit]:
        code = Code(facts.source)
        emit = imports.name(f"{_RUNTIME}.emit", _RUNTIME)
        rest = (statement.body[len(taken) :], statement.orelse[len(other) :])
        condition, lines = test, []
        if len(calls) > 1 or any(rest):
            condition = fresh(facts, "condition", predicates.taken)
            lines.append(f"{condition} = {test}")
        lines += [_emitted(code, emit, c, condition, "condition") for c in taken]
        lines += [_emitted(code, emit, c, condition, "not condition") for c in other]
        if rest[0]:
            lines += [f"if {condition}:", f"    {HOLE.format(0)}"]
            lines += ["else:", f"    {HOLE.format(1)}"] if rest[1] else []
        elif rest[1]:
            lines += [f"if ~{condition}:", f"    {HOLE.format(0)}"]
        return [*imports.edits(), replace(facts.source, [statement], "\n".join(lines) + "\n", *(r for r in rest if r))]

    title = "emit the output from inside the graph (graphmend.runtime), nothing lost"
    return offer(NAME, title, facts, make, [*predicates.differences, *found.differences])


def _leading(facts: FunctionFacts, statements: list[ast.stmt]) -> list[ast.Call]:
    """The output calls that a block begins with."""
    calls: list[ast.Call] = []
    for statement in statements:
        if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Call):
            break
        if not is_output(facts, statement.value):
            break
        calls.append(statement.value)
    return calls


def _emitted(code: Code, emit: str, call: ast.Call, condition: str, asked: str) -> str:
    options = "".join(f", {k.arg}={code.argument(k.value)}" for k in call.keywords)
    inside = f"lambda condition, *values: {code.text(call.func)}(*values{options}) if {asked} else None"
    return f"{emit}({', '.join([inside, condition, *map(code.argument, call.args)])})"


def is_output(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is a call one of print, logging and warnings?"""
    name = qualified(facts, call.func) or ""
    return name in ("builtins.print", "warnings.warn") or (
        name.startswith("logging.") and name.rpartition(".")[2] in _LEVELS
    )
