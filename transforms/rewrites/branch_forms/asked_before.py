"""Ask before a number is computed whether that raises, instead of handling the exception.

Before:
    try:
        scale = 1.0 / total.item()
    except ZeroDivisionError:
        scale = 0.0

After:
    if total.item() == 0:
        scale = 0.0
    else:
        scale = 1.0 / total.item()

Legal when:
    the `try` binds names, returns, or both, and one operation in it raises what its only handler names: a division by a
    number that is taken out of a tensor, or a function of `math` outside of its domain. Nothing else in it raises that.

Differs in:
    nothing: what does not raise is computed as before. It is written for the mends of branches, and stays where they
    remove the break.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Scalar, Static, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.if_conversion.tensor_predicates import effects_of_test
from graphmend.transforms.rewrites.answers import asks, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "asked_before"
#: functions of `math` and where they raise `ValueError`; of NaN they give NaN
_OUTSIDE = {
    **dict.fromkeys(("log", "log2", "log10"), "{0} <= 0"),
    "sqrt": "{0} < 0",
    "log1p": "{0} <= -1",
}
_DIVIDES = (ast.Div, ast.FloorDiv, ast.Mod)
_PERHAPS = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.comprehension)
#: of a number they raise nothing
_TOTAL = (("builtins", "float"), ("builtins", "abs"))
_NAMED = {"ZeroDivisionError": "division", "ArithmeticError": "division", "ValueError": "domain"}


class _Raising(NamedTuple):
    """An operation that raises, its operand that decides, and the test that it raises for that."""

    node: ast.expr
    operand: ast.expr
    test: str


@asks("effects", ends_try=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    around = [a for a in facts.ancestors(facts.node) if isinstance(a, ast.Try)]
    if len(around) != 1:
        return None
    statement = around[0]
    match statement:
        case ast.Try(
            handlers=[ast.ExceptHandler(type=ast.Name(id=raised), name=None, body=handled)], orelse=[], finalbody=[]
        ) if raised in _NAMED:
            pass
        case _:
            return None
    found = [r for s in statement.body for n in nodes_in(s) if (r := _raising(facts, n, _NAMED[raised])) is not None]
    if facts.node in [n for s in handled for n in nodes_in(s)]:
        return None
    if len(found) != 1 or not isinstance(facts.value(found[0].operand), Scalar):
        return refuse(NAME, f"what raises `{raised}` is not one number out of a tensor")
    at = found[0]
    inside = [n for s in statement.body for n in nodes_in(s)]
    if not all(_only_binds(s) for s in statement.body) or any(isinstance(n, _PERHAPS) for n in inside):
        return refuse(NAME, "the `try` does more than bind names")
    if not any(n is at.node for n in nodes_in(statement.body[0])):
        return refuse(NAME, "names are bound before what raises")
    if any(isinstance(n, ast.Raise) and n.exc is None for s in handled for n in nodes_in(s)):
        return refuse(NAME, "what is handled is raised again")
    if unknown := next((n for n in inside if n is not at.node and _may_raise_so(facts, n)), None):
        return refuse(NAME, f"`{ast.unparse(unknown)}` may raise `{raised}` as well")
    if effects_of_test(facts, at.operand):
        return refuse(NAME, f"`{ast.unparse(at.operand)}` would be evaluated twice")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    test = at.test.format(Code(facts.source).operand(at.operand))
    lines = [f"if {test}:", f"    {HOLE.format(0)}", "else:", f"    {HOLE.format(1)}"]
    if any(isinstance(s, ast.Return) for s in handled[-1:]):
        lines = [f"if {test}:", f"    {HOLE.format(0)}", HOLE.format(1)]
    return prepare(
        NAME,
        "ask before whether it raises",
        facts,
        lambda: [replace_statements(facts.source, [statement], "\n".join(lines) + "\n", handled, statement.body)],
    )


def _raising(facts: FunctionFacts, node: ast.AST, what: str) -> _Raising | None:
    """How an operation raises an exception of a kind, where it may."""
    match node:
        case ast.BinOp(op=op, right=right) if what == "division" and isinstance(op, _DIVIDES):
            if isinstance(constant(right), (int, float)) and constant(right) != 0:
                return None
            if isinstance(facts.value(node.left), (Scalar, Static)) or constant(node.left) is not None:
                return _Raising(node, right, "{0} == 0")
        case ast.Call(args=[operand], keywords=[]) if what == "domain":
            folder, _, last = (qualified(facts, node.func) or "").rpartition(".")
            if folder == "math" and last in _OUTSIDE:
                return _Raising(node, operand, _OUTSIDE[last])
    return None


def _only_binds(statement: ast.stmt) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name()]) | ast.Return(value=ast.expr()):
            return True
    return False


def _may_raise_so(facts: FunctionFacts, node: ast.AST) -> bool:
    """May an operation raise an `ArithmeticError` or a `ValueError`: a power of numbers, or a call of what is not
    torch's, whose errors are others?
    """
    match node:
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return not any(isinstance(facts.value(side), Tensor) for side in (left, right))
        case ast.Call(func=function):
            folder, _, last = (qualified(facts, function) or "").rpartition(".")
            return folder not in ("torch", "torch.Tensor") and (folder, last) not in _TOTAL
    return False
