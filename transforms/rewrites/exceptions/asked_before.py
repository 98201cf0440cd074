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
    the `try` binds names, returns, or both, and one operation in it raises what its only handler names: a number
    divided by one that is taken out of a tensor, or a function of `math` outside of its domain. All else in it is
    arithmetic with numbers and tensors that raises nothing of that kind; what the first statement computes has no
    effect.

Differs in:
    what stands in front of the operation is not evaluated where that raises, so that its own exceptions do not come.
    It is written for the mends of branches, and stays where they remove the break.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Scalar, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code, shortened
from graphmend.transforms.code.liveness import locals_of, surely_bound, writes
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant, number_type, qualified
from graphmend.transforms.code.text_edits import HOLE, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.if_conversion.value_tests import effects_of_test
from graphmend.transforms.legality.operations import names as known
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
_DIVISION = "builtins.ZeroDivisionError"
_DIVIDES = (ast.Div, ast.FloorDiv, ast.Mod)
_COMPUTE = known.ELEMENTWISE | known.ARITHMETIC | known.REDUCTIONS | known.CASTS | {"item", "zeros_like", "ones_like"}


class _Raising(NamedTuple):
    """An operation that raises, its operand that decides, and the test that it raises for that."""

    node: ast.expr
    operand: ast.expr
    test: str


@asks("effects", ends_try=True)
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    around = [a for a in facts.ancestors(facts.node) if isinstance(a, ast.Try)]
    match around:
        case [ast.Try(handlers=[ast.ExceptHandler(type=ast.Name() as of, name=None, body=handled)]) as statement] if (
            not statement.orelse and not statement.finalbody
        ):
            raised = qualified(facts, of)
        case _:
            return None
    tree = facts.source.tree
    if (
        raised is None
        or raised not in (_DIVISION, "builtins.ValueError")
        or tree is None
        or of.id in writes(*tree.body)
    ):
        return None
    if facts.node in [n for s in handled for n in nodes_in(s)]:
        return None
    found = [r for s in statement.body for n in nodes_in(s) if (r := _raising(facts, n, raised)) is not None]
    if len(found) != 1 or not isinstance(facts.value(found[0].operand), Scalar):
        return refuse(NAME, f"what raises `{of.id}` is not one number out of a tensor")
    at, first = found[0], statement.body[0]
    if not any(n is at.node for n in nodes_in(first)):
        return refuse(NAME, "names are bound before what raises")
    if any(isinstance(n, ast.Raise) and n.exc is None for s in handled for n in nodes_in(s)):
        return refuse(NAME, "what is handled is raised again")
    if (other := next(_others(facts, statement.body, at), None)) is not None:
        return refuse(NAME, f"`{shortened(other)}` may raise `{of.id}` as well, or do more than compute")
    computed = first.value if isinstance(first, (ast.Assign, ast.Return)) else None
    if computed is None or effects_of_test(facts, computed):
        return refuse(NAME, f"`{shortened(first)}` does more than compute")
    read = {n.id for n in nodes_in(computed) if isinstance(n, ast.Name)} & locals_of(facts.function)
    if unbound := read - surely_bound(facts, statement):
        return refuse(NAME, f"`{min(unbound)}` may not be bound")
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
        _not_evaluated(facts, computed, at),
    )


def _raising(facts: FunctionFacts, node: ast.AST, raised: str) -> _Raising | None:
    """How an operation raises an exception, where it may."""
    match node:
        case ast.BinOp(left=left, op=op, right=right) if raised == _DIVISION and isinstance(op, _DIVIDES):
            nonzero = isinstance(constant(right), (int, float)) and constant(right) != 0
            if not nonzero and _is_number(facts, left):
                return _Raising(node, right, "{0} == 0")
        case ast.Call(args=[operand], keywords=[]) if raised != _DIVISION:
            folder, _, last = (qualified(facts, node.func) or "").rpartition(".")
            if folder == "math" and last in _OUTSIDE:
                return _Raising(node, operand, _OUTSIDE[last])
    return None


def _is_number(facts: FunctionFacts, node: ast.expr) -> bool:
    return isinstance(facts.value(node), Scalar) or number_type(facts, node) is not None


def _others(facts: FunctionFacts, body: list[ast.stmt], at: _Raising) -> Iterator[ast.AST]:
    """What is no arithmetic with numbers and tensors that are in sight, besides the operation that raises."""
    numbers = {ast.unparse(s.targets[0]) for s in body if isinstance(s, ast.Assign) and s.value is at.node}
    for node in (n for s in body for n in nodes_in(s)):
        if node is at.node or isinstance(node, (ast.operator, ast.unaryop, ast.expr_context, ast.Constant)):
            continue
        match node:
            case ast.Assign(targets=[ast.Name()]) | ast.Return(value=ast.expr()) | ast.Name():
                continue
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as op, right=right):
                sides = [left, right]
                tensors = any(isinstance(facts.value(side), Tensor) for side in sides)
                known_sides = all(
                    isinstance(facts.value(s), Tensor) or _is_number(facts, s) or ast.unparse(s) in numbers
                    for s in sides
                )
                if known_sides and (tensors or not isinstance(op, ast.Div) or constant(right) is not None):
                    continue
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                if isinstance(facts.value(operand), Tensor) or _is_number(facts, operand):
                    continue
            case ast.Call(func=function, args=args, keywords=[]):
                folder, _, last = (qualified(facts, function) or "").rpartition(".")
                if (
                    folder in ("torch", "torch.Tensor")
                    and last in _COMPUTE
                    and not any(isinstance(a, ast.Starred) for a in args)
                ):
                    continue
                if f"{folder}.{last}" in ("builtins.float", "builtins.abs") and all(_is_number(facts, a) for a in args):
                    continue
            case ast.Attribute(value=base):
                above = facts.parent(node)
                if isinstance(facts.value(base), Tensor) or (isinstance(above, ast.Call) and above.func is node):
                    continue
        yield node


def _not_evaluated(facts: FunctionFacts, computed: ast.expr, at: _Raising) -> list[Difference]:
    """What does not come where the operation raises: exceptions of what stands in front of it, or of its left side."""
    found, place = [], (at.operand.lineno, at.operand.col_offset)
    own = {*nodes_in(at.operand)}
    around = {at.node, *facts.ancestors(at.node)}
    calls = (n for n in nodes_in(computed) if isinstance(n, (ast.Call, ast.BinOp)) and n not in own | around)
    if any((n.lineno, n.col_offset) < place for n in calls):
        says = f"where `{shortened(at.node)}` raises, what stands in front of it raises nothing of its own"
        found.append(Difference("exception", says))
    left = at.node.left if isinstance(at.node, ast.BinOp) else None
    if left is not None and number_type(facts, left) == "int" and constant(left) is None:
        says = f"`{shortened(left)}` beyond the range of floats raises no OverflowError where the divisor is zero"
        found.append(Difference("exception", says))
    return found
