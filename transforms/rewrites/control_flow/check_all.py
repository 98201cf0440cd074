"""Make an internal check of a whole tensor while compiled with the assertion that a graph can hold.

Before:
    torch._check_tensor_all(mask)

After:
    if torch.compiler.is_compiling():
        torch._assert_async(mask.all(), "assertion failed")
    else:
        torch._check_tensor_all(mask)

Legal when:
    the call is a statement of its own, its tensor is given by position, and no `try` of the function would catch the
    exception.

Differs in:
    while compiled the exception is a RuntimeError with the constant part of the message, on a GPU later than
    the line itself. Plain Python raises what it raised.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.context import observed
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.raised_messages import message

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "check_all"

#: the position of the tensor among each check's arguments; the message follows it
_CHECKS = {"torch._check_tensor_all": 0, "torch._check_tensor_all_with": 1}


@asks("context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    statement = facts.statement
    if not isinstance(statement, ast.Expr):
        return None
    found = [(call, at) for name, at in _CHECKS.items() if (call := called(facts, statement.value, name))]
    if not found:
        return None
    call, at = found[0]
    if len(call.args) <= at or any(isinstance(a, ast.Starred) for a in call.args):
        return refuse(NAME, "the tensor that is checked is not given by position")
    if observed(facts, statement):
        return refuse(
            NAME, "an enclosing `try` may catch the exception, which a compiled assertion does not raise in time"
        )
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    imports = Imports(facts)
    given = [*call.args[at + 1 :], *(k.value for k in call.keywords if k.arg == "message")]
    text = message(facts, given[0].body if given and isinstance(given[0], ast.Lambda) else None)
    check = f"{imports.name('torch._assert_async')}({Code(facts.source).operand(call.args[at])}.all(){text})"
    new = f"if {imports.name('torch.compiler.is_compiling')}():\n    {check}\nelse:\n    {HOLE.format(0)}\n"

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_statements(facts.source, [statement], new, [statement])]

    differences = [
        Difference("exception", "while compiled the exception is a RuntimeError, on a GPU an asynchronous one")
    ]
    return offer(NAME, "assert inside the graph while compiled (torch._assert_async)", facts, make, differences)
