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
    one side only raises, or the statement is an `assert` or a check of torch. The test is one element of a tensor
    (conjuncts in front of it that are known while tracing stay a Python `if`), no `try` of the function would
    catch the exception, and making its message has no effect.

Differs in:
    while compiled the exception is a RuntimeError whose message names values instead of showing them, loop counters
    aside, on a GPU later than the line itself. Plain Python raises what it raised. The other values, gradients and
    output stay the same.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.program.entities import Class
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import is_atom
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import is_elif, replaceable
from graphmend.transforms.code.qualified_names import called, qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.if_conversion.value_tests import depends, split
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.operations.checks import CONDITIONS
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.raised_messages import message

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "assert_async"


@asks("effects", "totality", "memory", "numbers", "gradients", "context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = guard(facts)
    if statement is None:
        return None
    if observed(facts, statement):
        return refuse(
            NAME, "an enclosing `try` may catch the exception, which a compiled assertion does not raise in time"
        )
    if effect := _effect_of_message(facts, statement):
        return refuse(NAME, f"`{effect}` in the message may do more than compute, and does not run while compiled")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    title = "assert inside the graph while compiled (torch._assert_async)"
    kept: list[list[ast.stmt]] = []
    try:
        if (plain := _plain(facts, statement, predicates)) is not None:
            title, new = "assert what TorchDynamo keeps in the graph: one tensor, and a plain text", plain
        else:
            new, kept = _asserted(facts, statement, predicates)
    except NotATensorError as error:
        return refuse(NAME, str(error))

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_statements(facts.source, [statement], new, *kept)]

    differences = [
        Difference("exception", "while compiled the exception is a RuntimeError, on a GPU an asynchronous one"),
        *predicates.differences,
    ]
    if any(isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store) for n in nodes_in(facts.function)):
        # side effects are replayed behind the graph, which has raised then (torch 2.13)
        differences.append(Difference("state", "where it raises while compiled, nothing is stored in objects"))
    return offer(NAME, title, facts, make, differences)


def guard(facts: FunctionFacts) -> ast.If | ast.Assert | ast.Expr | None:
    """The statement that raises where its test says so."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, ast.Assert):
            return node
        if isinstance(node, ast.Expr) and _check(facts, node) is not None:
            return node
        if isinstance(node, ast.If):
            ends = is_elif(facts.source, node)
            return node if _raised(node.body) or (_raised(node.orelse) and not ends) else None
    return None


@answers("effects")
def _effect_of_message(facts: FunctionFacts, statement: ast.If | ast.Assert | ast.Expr) -> str | None:
    """What the message of an exception does besides giving a text: the call of a function that is not known to only
    compute. What takes numbers out of tensors does not count.
    """
    if isinstance(statement, ast.Assert):
        made: list[ast.AST] = [statement.msg] if statement.msg is not None else []
    elif isinstance(statement, ast.If):
        made = [*(statement.body if _raised(statement.body) else statement.orelse)]
    else:
        call = _check(facts, statement)
        made = [*call.args[_place(facts, call) + 1 :], *call.keywords] if call is not None else []
    for node in (n for part in made for n in nodes_in(part)):
        if isinstance(node, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)):
            return ast.unparse(node)
        if isinstance(node, ast.Call) and not isinstance(facts.parent(node), ast.Raise) and not _only_says(facts, node):
            return ast.unparse(node)
    return None


def _only_says(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a call in a message only compute?"""
    name = qualified(facts, call.func)
    if name is None:
        text = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, (ast.Constant, ast.JoinedStr))
        return text or isinstance(facts.value(call.func), Class)  # an exception's class
    if isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_"):
        return False
    return name.startswith(("builtins.", "torch.", "math.", "numpy.")) and name not in _CONSUMING


_CONSUMING = tuple(
    f"builtins.{name}" for name in ("next", "print", "input", "open", "setattr", "delattr", "exec", "eval")
)


def _check(facts: FunctionFacts, statement: ast.Expr) -> ast.Call | None:
    """`torch._assert(test, message)`."""
    call = called(facts, statement.value, *CONDITIONS)
    if call is None or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    return call if len(call.args) > _place(facts, call) else None


def _place(facts: FunctionFacts, call: ast.Call) -> int:
    """Where a check has its condition."""
    return CONDITIONS[qualified(facts, call.func) or ""]


def _raised(block: list[ast.stmt]) -> ast.Raise | None:
    """What a block raises that does nothing else, but for names that it gives values to."""
    last = block[-1] if block else None
    if not isinstance(last, ast.Raise) or last.exc is None:
        return None
    named = all(isinstance(s, ast.Assign) and all(isinstance(t, ast.Name) for t in s.targets) for s in block[:-1])
    return last if named else None


def _said(block: list[ast.stmt]) -> ast.expr | None:
    """The message of an exception: its only argument, or the value of the name that this is."""
    raised = _raised(block)
    call = raised.exc if raised is not None else None
    said = call.args[0] if isinstance(call, ast.Call) and len(call.args) == 1 else None
    if isinstance(said, ast.Name):
        values = [s.value for s in block if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == said.id]
        return values[-1] if values else None
    return said


def _plain(facts: FunctionFacts, statement: ast.If | ast.Assert | ast.Expr, predicates: Predicates) -> str | None:
    """An `assert` of one tensor, in the place of one that asks Python about tensors and says a constant text: torch
    keeps it in the graph, and plain Python raises the same as before. None for all other checks.
    """
    if not isinstance(statement, ast.Assert) or not (statement.msg is None or _is_text(statement.msg)):
        return None
    static, tests = split(facts, statement.test)
    if static or not tests:
        return None
    said = "" if statement.msg is None else f", {predicates.code.argument(statement.msg)}"
    return f"assert {predicates.all_of(tests)}{said}\n"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _asserted(
    facts: FunctionFacts, statement: ast.If | ast.Assert | ast.Expr, predicates: Predicates
) -> tuple[str, list[list[ast.stmt]]]:
    """The new statements, and the old ones that live on in them."""
    compiling = f"if {predicates.imports.name('torch.compiler.is_compiling')}():\n"
    if not isinstance(statement, ast.If):
        return f"{compiling}{_held(facts, statement, predicates)}else:\n    {HOLE.format(0)}\n", [[statement]]
    static, tests = split(facts, statement.test)
    if not tests:
        raise NotATensorError("the test is not known to look at a tensor")
    code = predicates.code
    body, said = statement.body, _said(statement.body)
    wrong = len(tests) == 1 and not _raised(body)  # the other side raises: the test has to hold
    if wrong:
        body, said, text = statement.orelse, _said(statement.orelse), predicates.of(tests[0])
    elif not _raised(body):
        raise NotATensorError("the side that raises belongs to a test that is known while tracing too")
    elif len(tests) > 1:
        text = f"~({predicates.all_of(tests)})"
    else:
        text = predicates.negated(tests[0])
    if static and (statement.orelse or wrong):
        raise NotATensorError("the other side would have to be written twice, for the test that is known while tracing")
    function = predicates.imports.name("torch._assert_async")
    call = f"{function}({text}{message(facts, said)})\n"
    head = "".join(f"{code.operand(s) if isinstance(s, ast.BoolOp) else code.line(s)} and " for s in static)
    inner = f"    if {head.removesuffix(' and ')}:\n        {call}" if static else f"    {call}"
    test = code.line(statement.test)
    if wrong:
        lines = f"{compiling}{inner}elif not {_bracketed(test)}:\n    {HOLE.format(0)}\n{HOLE.format(1)}\n"
        return lines, [body, statement.body]
    lines = f"{compiling}{inner}elif {test}:\n    {HOLE.format(0)}\n"
    return (f"{lines}{HOLE.format(1)}\n", [body, statement.orelse]) if statement.orelse else (lines, [body])


def _held(facts: FunctionFacts, statement: ast.Assert | ast.Expr, predicates: Predicates) -> str:
    """The assertions for what an `assert`, or a check of torch, asks."""
    test, msg = (statement.test, statement.msg) if isinstance(statement, ast.Assert) else _asked(facts, statement)
    static, tests = split(facts, test)
    if not tests:
        raise NotATensorError("the assertion is not known to look at a tensor")
    text = message(facts, msg)
    lines = [f"assert {predicates.code.line(s)}{text}" for s in static]
    for t in tests:
        known = not depends(facts, t)
        function = "" if known else predicates.imports.name("torch._assert_async")
        lines.append(f"assert {predicates.code.line(t)}{text}" if known else f"{function}({predicates.of(t)}{text})")
    return "".join(f"    {line}\n" for line in lines)


def _asked(facts: FunctionFacts, statement: ast.Expr) -> tuple[ast.expr, ast.expr | None]:
    call = _check(facts, statement)
    assert call is not None
    at = _place(facts, call)
    said = [*call.args[at + 1 :], *(k.value for k in call.keywords)]
    return call.args[at], said[0].body if said and isinstance(said[0], ast.Lambda) else said[0] if said else None


def _bracketed(test: str) -> str:
    return test if is_atom(test) else f"({test})"
