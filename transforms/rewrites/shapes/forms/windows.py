"""Parts of known length whose begins are tensors: `x[i : i + 3, j : j + 3]`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant, is_tensor
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.gradients.sides import lost
from graphmend.transforms.legality.memory import written_to
from graphmend.transforms.legality.rows.copies import layout_shows, outdated, seen_as_view
from graphmend.transforms.legality.rows.places import not_negative
from graphmend.transforms.legality.rows.slices import Sliced, by_tensor, is_whole, is_whole_number, width_of
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.rewrites.answers import offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

NAME = "tensor_slice"
END = Difference("exception", "a part that would reach over an end of the tensor raises")
BELOW = Difference("exception", "a part that begins below zero raises")
_COPY = Difference("aliasing", "the result is a copy instead of a view")
_LAYOUT = Difference("strides", "the result may have other strides")
FLOAT = Difference("exception", "a bound that is no whole number raises no more")


def windows(facts: FunctionFacts) -> list[Sliced] | None:
    """The slices of the subscript around the finding, where several are by tensors, and each takes a known length."""
    around = (facts.node, *facts.ancestors(facts.node))
    node = next((n for n in around if isinstance(n, (ast.Subscript, ast.stmt))), None)
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple) or not is_tensor(facts, node.value):
        return None
    parts = node.slice.elts
    last = constant(parts[0]) is ...  # dimensions are counted from the end then
    if not all(isinstance(part, ast.Slice) for part in parts[last:]):
        return None
    found = [
        Sliced(node, part, dim - len(parts) if last else dim, True)
        for dim, part in enumerate(parts)
        if isinstance(part, ast.Slice) and not is_whole(part) and by_tensor(facts, part)
    ]
    known = all(one.part.step is None and width_of(facts, one.part) is not None for one in found)
    others = all(is_whole(part) for part in parts if part not in [one.part for one in found])
    return found if len(found) > 1 and known and others else None


def each_window(facts: FunctionFacts, parts: list[Sliced]) -> Fix | Refusal:
    """`x[i : i + 3, j : j + 3]`: one dimension after the other."""
    node, lowers = parts[0].node, [one.part.lower for one in parts if one.part.lower is not None]
    if not repeatable(facts, node.value, *lowers) or not isinstance(node.ctx, ast.Load) or written_to(facts, node):
        return refuse(NAME, "what the slices give is written to, or more than computes their bounds")
    if outdated(facts, node):
        return refuse(NAME, f"`{ast.unparse(node.value)}` may change before the part is read, which a copy misses")
    differences = [] if all(is_whole_number(facts, lower) for lower in lowers) else [FLOAT]

    def make() -> list[TextEdit]:
        imports, text = Imports(facts), Code(facts.source).operand(node.value)
        for one in parts:
            width = width_of(facts, one.part)
            assert width is not None
            first, last = ("..., ", ", :" * (-one.dim - 1)) if one.dim < 0 else (":, " * one.dim, "")
            text += f"[{first}{window(facts, imports, one, width)}{last}]"
        return [*imports.edits(), replace_expression(facts.source, node, text)]

    differences += [END, BELOW, *copied(facts, parts[0])]
    return offer(
        NAME, "pick by positions instead of by slices, one dimension after the other", facts, make, differences
    )


def copied(facts: FunctionFacts, found: Sliced) -> list[Difference]:
    """What the program may see of a copy in the place of a view."""
    seen = [_LAYOUT] if layout_shows(facts, found.node) else []
    if seen_as_view(facts, found.node):
        seen += [_COPY, *lost(facts, facts.statement, "the result has no gradient history", found.node.value)]
    return seen


def window(facts: FunctionFacts, imports: Imports, found: Sliced, width: ast.expr) -> str:
    """The positions that a part of a known length takes."""
    code = Code(facts.source)
    assert found.part.lower is not None
    tensor, lower = code.operand(found.node.value), found.part.lower
    span = f"{imports.name('torch.arange')}({code.argument(width)}, device={tensor}.device)"
    if not_negative(facts, lower):
        return f"{code.operand(lower)} + {span}"
    # a slice that begins below zero is another one: it raises as one that begins behind the end
    begin = f"{code.argument(lower)} < 0, {tensor}.shape[{found.dim}], {code.argument(lower)}"
    return f"{imports.name('torch.where')}({begin}) + {span}"
