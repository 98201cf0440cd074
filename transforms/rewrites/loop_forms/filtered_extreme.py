"""Take the greatest or the smallest of all elements, where those that a filter leaves out cannot be it.

Before:
    y = max(d[j] for j in range(n) if labels[j] == c)

After:
    y = torch.stack([torch.where(labels[j] == c, d[j], float("-inf")) for j in range(n)]).max(dim=0).values

Legal when:
    `max` or `min` is given nothing but a generator or a list of floating tensors, which one filter on a tensor leaves
    some out of. Every element is computed then, and must be computed whether it counts or not.

Differs in:
    where the filter leaves nothing, the result is infinite and nothing is raised; where a NaN is among the elements it
    is the result; the result is new memory. Elements that do not count get zeros for gradients.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.tensor_predicates import NotATensorError, Predicates
from graphmend.transforms.legality.gradients.sides import recorded
from graphmend.transforms.legality.speculation import speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "filtered_extreme"
_NOTHING = Difference("exception", "where nothing is left, the result is infinite instead of a ValueError")
_NAN = Difference("nan", "where a NaN is among the elements, it is the result")
_COPY = Difference("aliasing", "the result is a copy instead of one of the elements")
_ALIKE = Difference("exception", "all elements must have one shape, and one value each")
_DTYPE = Difference("dtype", "of several dtypes the result has the promoted one")
_TIES = Difference("gradients", "where an element that counts is infinite, another one may get its gradient")
_ZEROS = Difference("zero-gradients", "what only other elements use gets zeros for gradients instead of None")


@asks("effects", "totality", "memory", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    whole = next((n for n in (facts.node, *facts.ancestors(facts.node)) if called(facts, n, *_LIMITS)), None)  # type: ignore[arg-type]
    match whole:
        case ast.Call(
            args=[
                ast.GeneratorExp(elt=element, generators=[ast.comprehension(ifs=[test]) as loop])
                | ast.ListComp(elt=element, generators=[ast.comprehension(ifs=[test]) as loop])
            ],
            keywords=[],
        ) if facts.node is test or any(a is test for a in facts.ancestors(facts.node)):
            pass
        case _:
            return None
    value = facts.value(element)
    if not isinstance(value, Tensor) or value.ndarray or loop.is_async:
        return refuse(NAME, f"`{ast.unparse(element)}` is not known to be a tensor")
    if dtype_kind(value.dtype) not in (None, "float"):
        return refuse(NAME, f"of `{ast.unparse(element)}`, whole numbers, none is the smallest or the greatest")
    imports = Imports(facts)
    predicates = Predicates(facts, imports)
    try:
        asked = predicates.of(test)
    except NotATensorError as error:
        return refuse(NAME, str(error))
    found = speculate(facts, element)
    if found.blockers:
        return refuse(NAME, found.blockers[0])
    which, limit = ("max", "-inf") if called(facts, whole, "builtins.max") else ("min", "inf")
    code = predicates.code
    part = f'{imports.name("torch.where")}({asked}, {code.argument(element)}, float("{limit}"))'
    every = f"for {code.text(loop.target)} in {code.operand(loop.iter)}"
    text = f"{imports.name('torch.stack')}([{part} {every}]).{which}(dim=0).values"
    differences = [*predicates.differences, *found.differences, _NOTHING, _NAN, _COPY, _ALIKE]
    differences += [_DTYPE] if value.dtype not in ("float32", "float64", "float16", "bfloat16") else []
    differences += [_ZEROS, _TIES] if recorded(facts, facts.statement) else []

    def make() -> list[TextEdit]:
        return [*imports.edits(), replace_expression(facts.source, whole, text)]

    return offer(NAME, "take the extreme of all elements, under the filter", facts, make, differences)


_LIMITS = ("builtins.max", "builtins.min")
