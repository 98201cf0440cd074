"""Emit output that depends on a tensor: the condition goes along, and eager code asks it.

Before:
    if y.sum() > 0:
        print("positive", y)

After:
    graphmend.runtime.emit(lambda condition, *values: print(*values) if condition else None, y.sum() > 0, "positive", y)

Legal when:
    the branch is one output call (print, logging, warnings) without an `else`, its arguments only compute.

Differs in:
    the arguments are computed even when nothing is written.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.branches import gradient_differences
from graphmend.transforms.code import Code
from graphmend.transforms.edits import replace, replaceable
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


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = branch(facts)
    if statement is None or statement.orelse or len(statement.body) != 1:
        return None
    only = statement.body[0]
    if not isinstance(only, ast.Expr) or not isinstance(only.value, ast.Call) or not is_output(facts, only.value):
        return None
    call = only.value
    if any(isinstance(a, ast.Starred) for a in call.args) or any(constant(k.value) is None for k in call.keywords):
        return refuse(NAME, "the arguments of the output are not written one by one")
    static, tests = split(facts, statement.test)
    found = speculate(facts, *call.args)
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
        options = "".join(f", {k.arg}={code.argument(k.value)}" for k in call.keywords)
        inside = f"{code.text(call.func)}(*values{options}) if condition else None"
        arguments = ", ".join([f"lambda condition, *values: {inside}", test, *map(code.argument, call.args)])
        emit = imports.name(f"{_RUNTIME}.emit", _RUNTIME)
        return [*imports.edits(), replace(facts.source, [statement], f"{emit}({arguments})\n")]

    differences = [*predicates.differences, *found.differences, *gradient_differences(facts, statement, [])]
    title = "emit the output from inside the graph (graphmend.runtime), nothing lost"
    return offer(NAME, title, facts, make, differences)


def is_output(facts: FunctionFacts, call: ast.Call) -> bool:
    """Is a call one of print, logging and warnings?"""
    name = qualified(facts, call.func) or ""
    last = name.rpartition(".")[2]
    levels = (
        "debug",
        "info",
        "warning",
        "warn",
        "error",
        "critical",
        "exception",
        "log",
        "warning_once",
        "warning_advice",
    )
    return name in ("builtins.print", "warnings.warn") or (name.startswith("logging.") and last in levels)
