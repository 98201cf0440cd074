"""Keep a truth as a tensor where `or`, `and`, `not`, `any` and `all` would make a Python bool of tensors.

Before:
    bad = x.isnan().any() or x.isinf().any()

After:
    bad = x.isnan().any() | x.isinf().any()

Legal when:
    every operand of `or` and `and` is a 0-d bool tensor, whose truth is its value, and the later ones only compute. A
    truth that gets a name is only asked for, or counted with, by that name.

Differs in:
    all operands are computed: an exception of a later one appears. An operand that has a name is copied.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "logical"


@asks("effects", "totality", "memory", "dtypes", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = _named_truth(facts)
    return found if found is not None else _joined(facts)


def _named_truth(facts: FunctionFacts) -> Fix | Refusal | None:
    """`bad = not t`, `return any(t > 0 for t in ts)`: a truth that is given a name, or returned, and asked later."""
    statement = facts.statement
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.expr() as value) | ast.Return(value=ast.expr() as value) if (
            _asks_for_truth(facts, value)
        ):
            pass
        case _:
            return None
    imports = Imports(facts)
    predicates, uses = Predicates(facts, imports), ScalarUses(facts, "bool")
    try:
        text = predicates.of(value)
        uses.follow(value)
    except (NotATensorError, NeedsPythonNumberError) as error:
        return refuse(NAME, str(error))

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_expression(facts.source, value, text)]

    return offer(NAME, "keep the truth as a tensor", facts, make, [*predicates.differences, *uses.differences])


def _asks_for_truth(facts: FunctionFacts, value: ast.expr) -> bool:
    """Does an expression take the truth of tensors, and give it as a Python bool?"""
    if not any(node is facts.node for node in nodes_in(value)):
        return False
    negated = isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not)
    chain = isinstance(value, ast.Compare) and len(value.ops) > 1
    return negated or chain or called(facts, value, *_TRUTHS) is not None


_TRUTHS = ("builtins.any", "builtins.all", "builtins.bool", "torch.equal", "torch.allclose", "torch.Tensor.equal",
           "torch.Tensor.allclose", "torch.is_nonzero")  # fmt: skip


def _joined(facts: FunctionFacts) -> Fix | Refusal | None:
    """`t or u`."""
    node = facts.node
    chosen = next((n for n in (node, *facts.ancestors(node)) if isinstance(n, ast.BoolOp)), None)
    if chosen is None or (node is not chosen and node not in chosen.values) or _only_asked(facts, chosen):
        return None
    values = [facts.value(operand) for operand in chosen.values]
    if not all(isinstance(v, Tensor) and not v.ndarray and v.rank == 0 for v in values):
        return refuse(NAME, "an operand is not known to be a tensor of one element")
    possible = [kinds(facts, operand) for operand in chosen.values]
    if not all(found <= {"bool", "uint8"} for found in possible):
        return refuse(NAME, "an operand is not known to be of dtype bool")
    found = speculate(facts, *chosen.values[1:])
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    differences = list(found.differences)
    if any(kind != {"bool"} for kind in possible):
        differences.append(Difference("dtype", "of a uint8 and a bool the result is a uint8"))
    if not all(shares(facts, operand).fresh for operand in chosen.values):
        differences.append(Difference("aliasing", "the result is a copy where an operand is an existing tensor"))
    code = Code(facts.source)
    sign = " | " if isinstance(chosen.op, ast.Or) else " & "
    text = sign.join(code.operand(operand) for operand in chosen.values)
    if isinstance(facts.parent(chosen), ast.expr):
        text = f"({text})"
    return offer(NAME, "join the tensors", facts, lambda: [replace_expression(facts.source, chosen, text)], differences)


def _only_asked(facts: FunctionFacts, node: ast.BoolOp) -> bool:
    """Is only the truth of an expression asked for, by a test that has mends of its own?"""
    child: ast.AST = node
    above = facts.parent(node)
    while isinstance(above, ast.BoolOp) or (isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)):
        child, above = above, facts.parent(above)
    return isinstance(above, (ast.If, ast.While, ast.IfExp, ast.Assert)) and above.test is child
