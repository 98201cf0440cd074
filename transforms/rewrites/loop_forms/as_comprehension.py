"""Write what `map` and `filter` ask of tensors as the comprehension that it is.

Before:
    low, high = map(float, bounds)

After:
    low, high = [float(bound) for bound in bounds]

Legal when:
    a conversion to a Python number, or a lambda that only computes, is called with each element of one iterable. Where
    all of it is taken at once, it is a list; elsewhere a generator, which asks as late as `map` does.

Differs in:
    nothing: the same is asked of the same elements, in the same order. It is written for the mends of numbers, and
    stays where they remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.value_tests import effects_of_test
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "as_comprehension"
_CONVERSIONS = ("builtins.float", "builtins.int", "builtins.bool")
#: they take all that an iterable gives before they do anything else with it
_WHOLE = ("builtins.list", "builtins.tuple", "builtins.sorted")
#: they go through it and compute with each number
_THROUGH = ("builtins.sum", "builtins.max", "builtins.min")


@asks("effects", "names", any_value=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    inside = facts.node.args[:1] if isinstance(facts.node, ast.Call) else []
    around = (n for n in (*inside, facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.expr))
    call = next((c for n in around if (c := called(facts, n, "builtins.map", "builtins.filter"))), None)
    if call is None or len(call.args) != 2 or call.keywords or isinstance(call.args[1], ast.Starred):
        return None
    function, iterable = call.args
    code = Code(facts.source)
    clause = _clause(facts, code, function)
    if clause is None:
        return None
    if isinstance(function, ast.Lambda) and (found := effects_of_test(facts, function.body)):
        return refuse(NAME, found[0])
    element, name = clause
    text = f"{element} for {name} in {code.operand(iterable)}"
    if called(facts, call, "builtins.filter"):
        text = f"{name} for {name} in {code.operand(iterable)} if {element}"
    whole, brackets = _taken(facts, call)
    new = f"{brackets[0]}{text}{brackets[1]}"
    title = "write the map as a comprehension"
    return prepare(NAME, title, facts, lambda: [replace_expression(facts.source, whole, new)])


def _clause(facts: FunctionFacts, code: Code, function: ast.expr) -> tuple[str, str] | None:
    """What is made of each element, and the name of the element there."""
    match function:
        case ast.Lambda(args=ast.arguments(args=[ast.arg(arg=name)]) as given, body=body):
            plain = not (given.posonlyargs or given.kwonlyargs or given.vararg or given.kwarg or given.defaults)
            # a function inside would keep its own element; the last one stands for all in a comprehension
            inner = (ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda, ast.GeneratorExp)
            if not plain or any(isinstance(n, inner) for n in nodes_in(body)):
                return None
            return code.argument(body), name
    if isinstance(function, ast.Name) and called(facts, ast.Call(function, [], []), *_CONVERSIONS):
        name = fresh(facts, "element", [])
        return f"{function.id}({name})", name
    return None


def _taken(facts: FunctionFacts, call: ast.Call) -> tuple[ast.expr, str]:
    """What a comprehension takes the place of, and its brackets."""
    above = facts.parent(call)
    if not isinstance(above, ast.Call):
        at_once = isinstance(above, ast.Assign) and isinstance(above.targets[0], ast.Tuple)
        return call, "[]" if at_once else "()"
    if called(facts, above, "builtins.list") and above.args == [call]:
        return above, "[]"
    return call, "[]" if called(facts, above, *_WHOLE, *_THROUGH) else "()"
