"""Turn a raise guard or an assertion on a tensor into an assertion inside the graph; plain Python keeps its own.

Before:
    if (x < 0).any():
        raise ValueError("negative")

After:
    if torch.compiler.is_compiling():
        torch._assert_async(~(x < 0).any(), "negative")
    elif (x < 0).any():
        raise ValueError("negative")

Legal when:
    the branch only raises, the test is one element of a tensor (conjuncts in front of it that are known while
    tracing stay a Python `if`), and no `try` of the function would catch the exception.

Differs in:
    while compiled the exception is a RuntimeError with the constant part of the message, on a GPU later than
    the line itself. Plain Python raises what it raised. The other values, gradients and output stay the same.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code import folded
from graphmend.transforms.edits import HOLE, replace, replaceable
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.imports import Imports
from graphmend.transforms.legality import observed
from graphmend.transforms.offer import offer, refuse
from graphmend.transforms.predicate import NotATensorError, Predicates, split
from graphmend.transforms.text import quoted

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "assert_async"


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = guard(facts)
    if statement is None:
        return None
    if observed(facts, statement):
        return refuse(
            NAME, "an enclosing `try` may catch the exception, which a compiled assertion does not raise in time"
        )
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        new, kept = _asserted(facts, statement, predicates)
    except NotATensorError as error:
        return refuse(NAME, str(error))

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace(facts.source, [statement], new, *kept)]

    differences = [
        "while compiled the exception is a RuntimeError, on a GPU an asynchronous one",
        *predicates.differences,
    ]
    return offer(NAME, "assert inside the graph while compiled (torch._assert_async)", facts, make, differences)


def guard(facts: FunctionFacts) -> ast.If | ast.Assert | None:
    """The statement that raises where its test says so."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, ast.Assert):
            return node
        if isinstance(node, ast.If):
            only = len(node.body) == 1 and isinstance(node.body[0], ast.Raise) and node.body[0].exc is not None
            return node if only else None
    return None


def _asserted(
    facts: FunctionFacts, statement: ast.If | ast.Assert, predicates: Predicates
) -> tuple[str, list[list[ast.stmt]]]:
    """The new statements, and the old ones that live on in them."""
    imports, code = predicates.imports, predicates.code
    assert_async = imports.name("torch._assert_async")
    compiling = f"if {imports.name('torch.compiler.is_compiling')}():\n"
    if isinstance(statement, ast.Assert):
        static, tests = split(facts, statement.test)
        if not tests:
            raise NotATensorError("the assertion is not known to look at a tensor")
        text = message(statement.msg)
        lines = [f"assert {code.line(s)}{text}" for s in static]
        lines += [f"{assert_async}({predicates.of(t)}{text})" for t in tests]
        calls = "".join(f"    {line}\n" for line in lines)
        return f"{compiling}{calls}else:\n    {HOLE.format(0)}\n", [[statement]]
    raised = statement.body[0]
    assert isinstance(raised, ast.Raise)
    said = raised.exc.args[0] if isinstance(raised.exc, ast.Call) and len(raised.exc.args) == 1 else None
    static, tests = split(facts, statement.test)
    if not tests:
        raise NotATensorError("the test is not known to look at a tensor")
    if len(tests) > 1:
        opposite = "~(" + " & ".join(predicates.operand(t) for t in tests) + ")"
    else:
        opposite = predicates.negated(tests[0])
    deep = 8 if static else 4
    call = folded(f"{assert_async}({opposite}{message(said)})", 119 - deep - statement.col_offset)
    call = call.replace("\n", "\n" + " " * deep) + "\n"
    head = "".join(f"{code.operand(s) if isinstance(s, ast.BoolOp) else code.line(s)} and " for s in static)
    inner = f"    if {head.removesuffix(' and ')}:\n        {call}" if static else f"    {call}"
    test = code.line(statement.test)
    if not statement.orelse:
        return f"{compiling}{inner}elif {test}:\n    {HOLE.format(0)}\n", [[raised]]
    if static:
        raise NotATensorError("the other side would have to be written twice, for the test that is known while tracing")
    otherwise = f"{HOLE.format(1)}\n"
    return f"{compiling}{inner}elif {test}:\n    {HOLE.format(0)}\n{otherwise}", [[raised], statement.orelse]


def message(node: ast.expr | None) -> str:
    """The constant part of a message, as the second argument of the assertion."""
    if isinstance(node, ast.Call) and len(node.args) == 1:  # assert c, ValueError("message")
        node = node.args[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        text = node.value
    elif isinstance(node, ast.JoinedStr):
        text = "".join(str(p.value) if isinstance(p, ast.Constant) else "..." for p in node.values)
    else:
        return ', "assertion failed"'
    return f", {quoted(text or 'assertion failed')}"
