"""Look for the one element that is taken of those that a mask picks, of all or in each row.

Before:
    y = x[m, :].view(n, -1, d)[:, -1, :]

After:
    ranks = torch.arange(1, n + 1, device=m.device) * (m.sum() // n)
    y = x.flatten(0, 1)[torch.searchsorted(m.flatten().cumsum(0), ranks)]

    # x[m][0]
    x[m.int().argmax().reshape(1)].squeeze(0)

Legal when:
    of what a mask picks one element is taken, the number of which is known while tracing. Or it is viewed as so many
    rows of equal length, and one element of each row is taken. Every group is as long as all that is picked by the
    number of groups.

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
from graphmend.transforms.legality.rows.masked_elements import is_mask, same_shape
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "one_of_each"
_FITS = Difference("exception", "a view that does not fit what is picked, or an element that it lacks, raise no more")
_FEWER = Difference("exception", "an element that the mask does not pick, as it picks fewer, raises no more")
_NO_DIMENSIONS = Difference("shape", "a mask without dimensions picks an element where it picked all")
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


@asks("effects", "domain", "shapes", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    if (single := _single(facts)) is not None:
        return _of_all(facts, *single)
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


def _single(facts: FunctionFacts) -> tuple[ast.Subscript, ast.expr, ast.expr, int] | None:
    """`tensor[mask][place]`."""
    found, outer = _picked(facts, facts.node), facts.parent(facts.node)
    if found is None or not isinstance(outer, ast.Subscript) or outer.value is not facts.node:
        return None
    place = constant(outer.slice)
    whole = isinstance(place, int) and not isinstance(place, bool) and isinstance(outer.ctx, ast.Load)
    return (outer, *found, place) if whole and isinstance(place, int) else None


def _of_all(facts: FunctionFacts, node: ast.expr, tensor: ast.expr, picking: ast.expr, place: int) -> Fix | Refusal:
    """The one element of all that are picked."""
    if does := effects(facts, tensor, picking):
        return refuse(NAME, does[0])
    if _rank(facts, picking) == 0:
        return refuse(NAME, f"`{ast.unparse(picking)}` has no dimensions")
    code, rank = Code(facts.source), _rank(facts, picking)
    mask, flat = code.operand(picking), code.operand(tensor)
    device = f"{mask}.device"
    if rank != 1:
        last = f"{mask}.dim() - 1" if rank is None else rank - 1
        flat += ".flatten()" if same_shape(facts, tensor, picking) else f".flatten(0, {last})"
        mask += ".flatten()"

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        if place == 0:
            at = f"{mask}.int().argmax().reshape(1)"
        else:
            nth = f"{mask}.sum().reshape(1)" + (f" - {-place - 1}" if place < -1 else "")
            nth = f"{imports.name('torch.full')}((1,), {place + 1}, device={device})" if place > 0 else nth
            at = f"{imports.name('torch.searchsorted')}({mask}.cumsum(0), {nth})"
        text = f"{flat}[{at}].squeeze(0)"
        return [*imports.edits(), replace_expression(facts.source, node, text)]

    differences = [_FEWER, _SHAPE, _LAID, *([_NO_DIMENSIONS] if rank is None else [])]
    return offer(NAME, "look for the element that is taken", facts, make, differences)


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
