"""Compute with a 0-d tensor what an operator computes with a Python number.

Before:
    y = F.leaky_relu(x, slope.abs())

After:
    y = torch.where(x > 0, x, x * slope.abs())

Legal when:
    the operator has a form with operations that take tensors there, too, and what is evaluated more than once does
    nothing else than compute.

Differs in:
    the number is computed in the tensor's precision instead of Python's; a tensor that asks for gradients, which no
    operator takes for a number, raises no more.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.torch_facts.number_arguments import NUMBER_ARGUMENTS
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import written
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "tensor_argument"
_ASKS = Difference("exception", "a tensor that asks for gradients, which is no number, raises no more")


@asks("numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    node = facts.node
    if not isinstance(node, ast.Call):
        return None
    places = NUMBER_ARGUMENTS.get(qualified(facts, node.func) or "", frozenset())
    given = [*enumerate(node.args), *((k.arg, k.value) for k in node.keywords)]
    numbers = [value for place, value in given if place in places and isinstance(facts.value(value), Tensor)]
    if len(numbers) != 1:
        return refuse(NAME, "several arguments are tensors instead of numbers") if numbers else None
    value = facts.value(numbers[0])
    assert isinstance(value, Tensor)
    uses = ScalarUses(facts, value.dtype, rewrites=True)
    try:
        uses.follow(numbers[0])
    except NeedsPythonNumberError as error:
        return refuse(NAME, str(error))
    if node not in uses.counterparts or uses.also:
        return refuse(NAME, f"`{ast.unparse(node.func)}` has no form with a tensor there")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        made = written(facts, imports, {}, uses.counterparts)
        return [*imports.edits(), *(replace_expression(facts.source, n, text) for n, text in made.items())]

    asks_for = [_ASKS] if recorded(facts, facts.statement) else []
    title = "compute with the tensor instead of a number"
    return offer(NAME, title, facts, make, [*uses.differences, *asks_for])
