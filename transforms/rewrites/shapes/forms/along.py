"""What is computed along the elements that a mask picks (`x[m].softmax(0)`), computed along all of them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor, dtype_kind
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.gradients.sides import leak, recorded
from graphmend.transforms.legality.rows.masked_elements import (
    Picked,
    aligned,
    is_line,
    missing_dimensions,
    one_by_one,
    other_rank,
    other_shape,
    picks_in,
    singular_at_one,
    unlike,
)
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.answers import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

ALL = Difference("evaluation", "all elements are computed, those that are not picked in vain")
#: functions along a dimension, with what counts for nothing there
_NOTHING = {"softmax": 'float("-inf")', "log_softmax": 'float("-inf")', "cumsum": "0", "cumprod": "1"}


def along(facts: FunctionFacts, found: Picked, rewrite: str) -> Fix | Refusal | None:
    """`x[m].softmax(0)`: of all elements, where those that are not picked count for nothing, and picked then."""
    above = (n for n in facts.ancestors(facts.node) if isinstance(n, ast.Call))
    call = next((n for n in above if (qualified(facts, n.func) or "").rpartition(".")[2] in _NOTHING), None)
    if call is None or (body := _first(facts, call)) is None:
        return None
    mask, picks = found.mask, picks_in(facts, body, found.mask)
    name = (qualified(facts, call.func) or "").rpartition(".")[2]
    given = [*(a for a in call.args if a is not body), *(k.value for k in call.keywords if k.arg == "dim")]
    plain = len(given) == 1 and len(call.args) + len(call.keywords) - (body in call.args) == 1
    flat = all(missing_dimensions(facts, p) == 0 for p in picks.values())
    if not plain or not picks or constant(given[0]) not in ((0, -1) if flat else (0,)):
        return None
    if not one_by_one(facts, body, picks):
        return refuse(rewrite, f"`{ast.unparse(body)}` is not computed from elements picked by one mask, one at a time")
    if not repeatable(facts, mask, *(p.tensor for p in picks.values())):
        return refuse(rewrite, f"`{ast.unparse(mask)}` does more than compute")
    if blockers := speculate(facts, body).blockers:
        return refuse(rewrite, blockers[0])
    fills = body not in picks and leak(facts, body) != "never" and recorded(facts, facts.statement)
    if fills and (singular := singular_at_one(facts, [body])):
        return refuse(rewrite, f"`{singular}` has no derivative at 1")
    if any(other_rank(facts, p.tensor, found.tensor) for p in picks.values()):
        return refuse(rewrite, f"`{ast.unparse(body)}` is of tensors of different numbers of dimensions")
    differences = [ALL, Difference("rounding", f"`{name}` may round differently, as more elements are added")]
    of = facts.value(body)
    if not isinstance(of, Tensor) or dtype_kind(of.dtype) not in ("float", "complex"):
        differences.append(Difference("exception", f"`{name}` of whole numbers no longer raises, or raises otherwise"))
        differences.append(Difference("dtype", f"`{name}` of no whole numbers at all is of floating ones"))
    for pick in picks.values():
        differences += [*other_shape(facts, pick), *unlike(facts, pick.tensor, found.tensor)]
    if not flat and missing_dimensions(facts, found) is None:
        differences.append(Difference("shape", f"`{ast.unparse(mask)}` is taken to have dimensions"))

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        where, line = imports.name("torch.where"), is_line(facts, mask)
        texts: dict[ast.expr, str] = {n: code.operand(p.tensor) for n, p in picks.items()}
        if fills:
            texts = {n: f"{where}({aligned(facts, p)}, {code.argument(p.tensor)}, 1)" for n, p in picks.items()}
        every = f"{where}({aligned(facts, found)}, {code.argument(body, texts)}, {_NOTHING[name]})"
        shape = ""
        if not line:  # the dimensions of the mask are one, as they are for what it picks
            text = code.operand(mask)
            every += ".flatten()" if flat else f".flatten(0, {text}.dim() - 1)"
            shape = f".view_as({text if flat else code.argument(next(iter(picks.values())).tensor)})"
        new = f"{code.text(call, {body: every})}{shape}[{code.argument(mask)}]"
        return [*imports.edits(), replace_expression(facts.source, call, new)]

    return offer(rewrite, f"compute `{name}` of all elements and pick then", facts, make, differences)


def _first(facts: FunctionFacts, call: ast.Call) -> ast.expr | None:
    """The tensor that a function of torch works on."""
    folder = (qualified(facts, call.func) or "").rpartition(".")[0]
    if folder == "torch.Tensor" and isinstance(call.func, ast.Attribute):
        return call.func.value
    return call.args[0] if folder in ("torch", "torch.nn.functional") and call.args else None
