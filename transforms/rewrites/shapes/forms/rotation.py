"""A tensor whose first part is put behind the rest: `torch.cat([x[n:], x[:n]])`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.rows.slices import by_tensor, is_whole_number
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import offer, refuse
from graphmend.transforms.rewrites.shapes.forms.windows import FLOAT, NAME

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LAYOUT = Difference("strides", "the result may have other strides")
_DEVICE = Difference("exception", "a place on another device raises")


def rotated(facts: FunctionFacts) -> Fix | Refusal | None:
    """Every row from its place in the other order; as slices do, a place beyond an end is taken for the end."""
    around = [n for n in facts.ancestors(facts.node) if isinstance(n, ast.expr)]
    call = next((c for n in around if (c := called(facts, n, "torch.cat", "torch.concat"))), None)
    match call:
        case ast.Call(args=[ast.List(elts=parts) | ast.Tuple(elts=parts), *rest], keywords=keywords) if (
            constant([*rest, *(k.value for k in keywords), ast.Constant(0)][0]) == 0 and len(rest) + len(keywords) < 2
        ):
            pass
        case _:
            return None
    match parts:
        case [
            ast.Subscript(value=tensor, slice=ast.Slice(lower=ast.expr() as place, upper=None, step=None) as behind),
            ast.Subscript(value=again, slice=ast.Slice(lower=None, upper=ast.expr() as end, step=None)),
        ] if ast.unparse(tensor) == ast.unparse(again) and ast.unparse(place) == ast.unparse(end):
            pass
        case _:
            return None
    value = facts.value(tensor)
    if not isinstance(value, Tensor) or value.ndarray or not by_tensor(facts, behind):
        return None
    if not repeatable(facts, tensor, place):
        return refuse(NAME, f"`{ast.unparse(tensor)}` does more than compute")
    differences = [_DEVICE, *([] if value.rank == 1 else [_LAYOUT])]
    if not is_whole_number(facts, place):
        differences.append(FLOAT)

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        of, at = code.operand(tensor), code.operand(place)
        size = f"{of}.shape[0]"
        places = f"({imports.name('torch.arange')}({size}, device={of}.device) + {at}.clamp(-{size}, {size})) % {size}"
        assert call is not None
        return [*imports.edits(), replace_expression(facts.source, call, f"{of}[{places}]")]

    return offer(NAME, "pick by positions instead of by slices", facts, make, differences)
