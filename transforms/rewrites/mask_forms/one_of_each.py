"""Look for the one element that is taken of those that a mask picks in each row.

Before:
    y = x[m, :].view(n, -1, d)[:, -1, :]

After:
    ranks = torch.arange(1, n + 1, device=m.device) * (m.sum() // n)
    y = x.flatten(0, 1)[torch.searchsorted(m.flatten().cumsum(0), ranks)]

Legal when:
    what a mask picks is viewed as so many rows of equal length, and one element of each row is taken, the number of
    which is known while tracing. Every group is as long as all that is picked by the number of groups.

Differs in:
    a view that does not fit what is picked, and an element that is not there, raise no more. The result lies in memory
    in order.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import constant, is_tensor, number_type
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.rows.masked_elements import is_mask
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "one_of_each"
_FITS = Difference("exception", "a view that does not fit what is picked, or an element that it lacks, raise no more")
_SHAPE = Difference("exception", "a mask of another shape than what it picks from raises otherwise, or no more")
_LAID = Difference("strides", "the result lies in memory in order")


class _Taken(NamedTuple):
    """`tensor[mask].view(groups, -1, *sizes)[:, place]`."""

    node: ast.expr
    tensor: ast.expr
    mask: ast.expr
    groups: ast.expr
    sizes: list[ast.expr]
    place: int


@asks("effects", "domain", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    taken = _taken(facts)
    if taken is None:
        return None
    sizes = [taken.groups, *taken.sizes]
    if not all(number_type(facts, size) == "int" for size in sizes):
        return refuse(NAME, "the sizes of the view are not known while tracing")
    if does := effects(facts, taken.tensor, taken.mask, *sizes):
        return refuse(NAME, does[0])

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        return [*imports.edits(), replace_expression(facts.source, taken.node, _text(facts, imports, taken))]

    return offer(NAME, "look for the elements that are taken", facts, make, [_FITS, _SHAPE, _LAID])


def _text(facts: FunctionFacts, imports: Imports, taken: _Taken) -> str:
    code = Code(facts.source)
    tensor, mask, groups = map(code.operand, (taken.tensor, taken.mask, taken.groups))
    whole, picking = _rank(facts, taken.tensor), _rank(facts, taken.mask)
    last = f"{mask}.dim() - 1" if picking is None else str(picking - 1)
    number = constant(taken.groups)
    first, end = (0, groups) if taken.place >= 0 else (1, number + 1 if isinstance(number, int) else f"{groups} + 1")
    span = f"{first}, {end}" if first else f"{end}"
    ranks = f"{imports.name('torch.arange')}({span}, device={mask}.device) * ({mask}.sum() // {groups})"
    if taken.place != -1:
        ranks += f" {'+' if taken.place >= -1 else '-'} {abs(taken.place + 1)}"
    flat = tensor if last == "0" else f"{tensor}.flatten(0, {last})"
    found = f"{flat}[{imports.name('torch.searchsorted')}({mask}.flatten().cumsum(0), {ranks})]"
    if whole is None or picking is None or whole != picking + len(taken.sizes):
        found += f".view({', '.join([groups, *map(code.argument, taken.sizes)])})"
    return found


def _rank(facts: FunctionFacts, node: ast.expr) -> int | None:
    value = facts.value(node)
    return value.rank if isinstance(value, Tensor) else None


def _taken(facts: FunctionFacts) -> _Taken | None:
    """The element of each group around a pick."""
    picked = facts.node
    found = _picked(facts, picked)
    attribute = facts.parent(picked)
    call = facts.parent(attribute) if attribute is not None else None
    outer = facts.parent(call) if call is not None else None
    if found is None or not isinstance(attribute, ast.Attribute) or attribute.attr not in ("view", "reshape"):
        return None
    match call, outer:
        case (
            ast.Call(args=[groups, length, *sizes], keywords=[]),
            ast.Subscript(slice=ast.Tuple(elts=[every, place, *rest])),
        ) if constant(length) == -1 and all(map(_is_all, [every, *rest])) and len(rest) <= len(sizes):
            number = constant(place)
            if outer.value is call and isinstance(number, int) and not isinstance(number, bool):
                return _Taken(outer, *found, groups, sizes, number)
    return None


def _picked(facts: FunctionFacts, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """`tensor[mask]`, with whole dimensions behind the mask."""
    match node:
        case ast.Subscript(value=tensor, slice=ast.Tuple(elts=[mask, *rest])) if all(map(_is_all, rest)):
            pass
        case ast.Subscript(value=tensor, slice=mask):
            pass
        case _:
            return None
    return (tensor, mask) if is_mask(facts, mask) and is_tensor(facts, tensor) else None


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and not (node.lower or node.upper or node.step)
