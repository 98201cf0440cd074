"""Give an argument by its name where Dynamo reads it only so.

Before:
    for kind, group in itertools.groupby(items, lambda item: item.kind):

After:
    for kind, group in itertools.groupby(items, key=lambda item: item.kind):

Legal when:
    the call is `itertools.groupby` with its key as second positional argument. Measured on torch 2.13.

Differs in:
    nothing.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Fix
from graphmend.transforms.rewrites.answers import asks, offer

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "name_argument"
_FUNCTION, _COUNT, _NAME = "itertools.groupby", 2, "key"


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | None:
    call = called(facts, facts.node, _FUNCTION) if isinstance(facts.node, ast.expr) else None
    if call is None or len(call.args) != _COUNT or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    last = call.args[-1]
    text = f"{_NAME}={Code(facts.source).text(last)}"
    return offer(NAME, f"give `{_NAME}` by its name", facts, lambda: [replace_expression(facts.source, last, text)])
