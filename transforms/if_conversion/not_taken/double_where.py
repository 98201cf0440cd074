"""The second `where` of a selection: operands at which the side not taken has no finite derivative are replaced there.

`torch.where(n > 0, x / n, x)` sends a gradient of 0 into `x / n` where `n` is 0, and 0 times infinity is NaN. With
`x / torch.where(n > 0, n, 1)` the division happens at 1 there, and its gradient of 0 stays 0. Where the side is taken,
its values and gradients are those of the plain expression.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.legality.operations import names as known

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: the node that is singular, the operand that decides, and a value of it with a finite derivative
Singular = tuple[ast.expr, ast.expr, str]


def singular(facts: FunctionFacts, expression: ast.expr) -> Iterator[Singular]:
    """The operations of an expression that one tensor operand keeps finite, inner ones first."""
    for child in ast.iter_child_nodes(expression):
        if isinstance(child, ast.expr):
            yield from singular(facts, child)
        elif isinstance(child, ast.keyword):
            yield from singular(facts, child.value)
    if isinstance(expression, ast.BinOp):
        yield from _operator(facts, expression)
    elif isinstance(expression, ast.Call):
        yield from _function(facts, expression)


def _operator(facts: FunctionFacts, node: ast.BinOp) -> Iterator[Singular]:
    if isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
        if _number_like(facts, node.right):
            yield node, node.right, "1"
    elif isinstance(node.op, ast.Pow):
        power = constant(node.right)
        whole = isinstance(power, int) and power >= 1
        if _number_like(facts, node.left) and not whole and not isinstance(facts.value(node.right), Tensor):
            yield node, node.left, "1"
        elif _number_like(facts, node.right) and not isinstance(facts.value(node.left), Tensor):
            yield node, node.right, "1"


def _function(facts: FunctionFacts, node: ast.Call) -> Iterator[Singular]:
    name = qualified(facts, node.func) or ""
    folder, _, last = name.rpartition(".")
    if folder not in known.FUNCTIONAL or node.keywords:
        return
    arguments = list(node.args)
    if folder == "torch.Tensor" and isinstance(node.func, ast.Attribute):
        arguments.insert(0, node.func.value)
    for names, position, value in _DECIDES:
        if last in names and len(arguments) > position and _number_like(facts, arguments[position]):
            yield node, arguments[position], value
            return


#: functions, which of their operands decides, and where it does no harm
_DECIDES: tuple[tuple[frozenset[str], int, str], ...] = (
    (frozenset("sqrt rsqrt log log2 log10 log1p reciprocal exp exp2 expm1 sinh cosh lgamma digamma".split()), 0, "1"),
    (frozenset("asin acos atanh erfinv tan".split()), 0, "0"),
    (frozenset("div divide true_divide".split()), 1, "1"),
    (frozenset({"acosh"}), 0, "2"),
)


def _number_like(facts: FunctionFacts, node: ast.expr) -> bool:
    """A tensor of numbers, which `where` can fill with a whole number and keep its dtype."""
    value = facts.value(node)
    return isinstance(value, Tensor) and not value.ndarray and dtype_kind(value.dtype) != "bool"


def decided_by(facts: FunctionFacts, test: ast.expr, expressions: Iterable[ast.expr]) -> ast.expr | None:
    """The operand by which a test keeps an operation of some expressions away from its singular point: the `n` of
    `x / n if n > 0 else x`.
    """
    asked = {ast.dump(n) for n in nodes_in(test) if isinstance(n, ast.expr) and isinstance(facts.value(n), Tensor)}
    operands = (operand for e in expressions for _, operand, _ in singular(facts, e))
    return next((operand for operand in operands if ast.dump(operand) in asked), None)


def protect(
    facts: FunctionFacts,
    expression: ast.expr,
    taken: Callable[[], str],
    where: Callable[[], str],
    replace: dict[ast.expr, str],
    protected: set[ast.expr],
) -> None:
    """Adds to `replace` a text for each operand that decides, kept where `taken` holds, and to `protected` the
    operations that are harmless then.
    """
    code = Code(facts.source)
    for node, operand, value in singular(facts, expression):
        if node not in protected:
            replace[operand] = f"{where()}({taken()}, {code.argument(operand, replace)}, {value})"
            protected.add(node)
