"""Sort and cut instead of asking a heap for the largest or the smallest.

Before:
    top = heapq.nlargest(2, range(len(scores)), key=lambda i: scores[i].item())

After:
    top = sorted(range(len(scores)), key=lambda i: scores[i].item(), reverse=True)[:2]

Legal when:
    how many are asked for is a whole number, and the rest is what `sorted` takes as well.

Differs in:
    nothing but for NaN, which has no place in an order: Python documents both as equal. It is written for the mends of
    `sorted`, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import locals_of, writes
from graphmend.transforms.code.qualified_names import called, constant, number_type, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "heap_as_sort"


@asks(any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    around = (facts.node, *facts.ancestors(facts.node))
    names = ("heapq.nlargest", "heapq.nsmallest")
    call = next((c for n in around if isinstance(n, ast.expr) and (c := called(facts, n, *names))), None)
    if call is None:
        return None
    asked = call.args[0] if len(call.args) == 2 else None
    count = constant(asked)
    known = isinstance(count, int) and count >= 1
    counted = isinstance(asked, ast.Name) and number_type(facts, asked) == "int"
    if not (known or counted) or any(k.arg != "key" for k in call.keywords):
        return refuse(NAME, "how many are asked for is not known to be a whole number")
    tree = facts.source.tree
    if tree is None or {"sorted", "max"} & (locals_of(facts.function) | writes(*tree.body)):
        return refuse(NAME, "`sorted`, or `max`, means something else in the module")
    code = Code(facts.source)
    key = f", key={code.text(call.keywords[0].value)}" if call.keywords else ""
    falls = ", reverse=True" if (qualified(facts, call.func) or "").endswith("nlargest") else ""
    end = str(count) if known else f" max({code.argument(call.args[0])}, 0)"  # of a negative number there is none
    text = f"sorted({code.argument(call.args[1])}{key}{falls})[:{end}]"
    nan = Difference("nan", "where a NaN is among the keys, others may be chosen")
    return prepare(NAME, "sort and cut", facts, lambda: [replace_expression(facts.source, call, text)], [nan])
