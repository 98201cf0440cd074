"""Elements that a mask picks out of a tensor, and the tensor as a whole under that mask. Asked by the rewrites that
work on all elements instead of on those picked.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Picked(NamedTuple):
    """`tensor[mask]`."""

    tensor: ast.expr
    mask: ast.expr


def picked(facts: FunctionFacts, node: ast.AST) -> Picked | None:
    """`x[m]` or `x.masked_select(m)`."""
    match node:
        case ast.Subscript(value=value, slice=mask) if is_mask(facts, mask) and is_tensor(facts, value):
            return Picked(value, mask)
        case ast.Call(func=ast.Attribute(value=value, attr="masked_select"), args=[mask]) if is_tensor(facts, value):
            found = Picked(value, mask)
        case ast.Call(args=[value, mask], keywords=[]) if called(facts, node, "torch.masked_select"):
            found = Picked(value, mask)
        case _:
            return None
    # `masked_select` broadcasts by the trailing dimensions: only a mask of the same rank means the same as an index
    return found if missing_dimensions(facts, found) == 0 else None


def is_mask(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Tensor) and value.dtype == "bool" and not value.ndarray


def missing_dimensions(facts: FunctionFacts, found: Picked) -> int | None:
    """How many dimensions a mask has fewer than its tensor; None where that is not known."""
    one, two = facts.value(found.tensor), facts.value(found.mask)
    if not isinstance(one, Tensor) or not isinstance(two, Tensor):
        return None
    if one.shape is not None and one.shape == two.shape:
        return 0
    return one.rank - two.rank if one.rank is not None and two.rank is not None else None


def aligned(facts: FunctionFacts, found: Picked) -> str:
    """The mask as text that broadcasts against its tensor: a mask picks by the leading dimensions."""
    code, fewer = Code(facts.source), missing_dimensions(facts, found)
    if fewer == 0:
        return code.argument(found.mask)
    mask, tensor = code.operand(found.mask), code.operand(found.tensor)
    if fewer is not None:
        return f"{mask}[...{', None' * fewer}]"
    return f"{mask}.reshape({mask}.shape + (1,) * ({tensor}.dim() - {mask}.dim()))"


class Nonzero(NamedTuple):
    """The places at which a tensor is not zero."""

    mask: ast.expr
    as_tuple: bool
    """One tensor for each dimension, instead of a row for each place?"""


def nonzero_of(facts: FunctionFacts, node: ast.AST) -> Nonzero | None:
    """`torch.where(m)`, `m.nonzero()`, `torch.nonzero(m, as_tuple=True)`, `torch.argwhere(m)`."""
    if not isinstance(node, ast.Call):
        return None
    if called(facts, node, "torch.where") and len(node.args) == 1 and not node.keywords:
        return Nonzero(node.args[0], True)
    options = {k.arg: constant(k.value) for k in node.keywords}
    as_tuple = options.pop("as_tuple", False)
    if options or not isinstance(as_tuple, bool):
        return None
    if called(facts, node, "torch.nonzero", "torch.argwhere") and len(node.args) == 1:
        return Nonzero(node.args[0], as_tuple)
    if method(facts, node, "nonzero", "argwhere") and not node.args and isinstance(node.func, ast.Attribute):
        return Nonzero(node.func.value, as_tuple) if is_tensor(facts, node.func.value) else None
    return None
