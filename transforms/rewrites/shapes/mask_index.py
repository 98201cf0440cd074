"""Index with the mask itself instead of with the places at which it holds.

Before:
    rows = torch.where(mask)[0]
    y[rows] = x[rows] * 2

After:
    rows = mask
    y[rows] = x[rows] * 2

Legal when:
    the places are only used as an index: those of a mask of one dimension, or all dimensions at once. What the
    index then picks is mended next: it is stored to, or reduced. The mask is copied where it may be written to later.

Differs in:
    nothing, where what is indexed is known to have the mask's shape; a longer tensor raises.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.qualified_names import constant, is_tensor, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal
from graphmend.transforms.legality.memory import escapes, shares
from graphmend.transforms.legality.rows.masked_elements import Nonzero, is_mask, nonzero_of
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "mask_index"


@asks("memory", "domain", "shapes")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = nonzero_of(facts, facts.node)
    if found is None or not isinstance(facts.node, ast.expr):
        return None
    whole = _places(facts, found, facts.node)
    if whole is None:
        return None
    if not is_tensor(facts, found.mask):
        return refuse(NAME, f"`{ast.unparse(found.mask)}` is not known to be a tensor")
    indexed = _indexed(facts, whole, found.mask)
    if indexed is None:
        return refuse(NAME, "the places are used for more than an index")
    if not any(_mendable(facts, use, whole) for use in indexed):
        return refuse(NAME, "what is picked is used as it is: the graph breaks at the mask as well")
    code = Code(facts.source)
    text = code.argument(found.mask) if is_mask(facts, found.mask) else f"({code.operand(found.mask)} != 0)"
    if is_mask(facts, found.mask) and _changes(facts, found.mask):
        text = f"{code.operand(found.mask)}.clone()"
    changed = replace_expression(facts.source, whole, text)
    differences = [
        Difference(
            "exception",
            f"`{ast.unparse(tensor)}` is taken to be as long as the mask; a longer one raises",
        )
        for tensor in (use.value for use in indexed)
        if not _same_shape(facts, tensor, found.mask)
    ]
    asked = facts.value(found.mask)
    if not (isinstance(asked, Tensor) and asked.rank):
        says = f"`{ast.unparse(found.mask)}` without dimensions has a place, which raises as an index, and no more"
        differences.append(Difference("exception", says))
    return offer(NAME, "index with the mask itself", facts, lambda: [changed], differences)


@answers("shapes")
def _same_shape(facts: FunctionFacts, tensor: ast.expr, mask: ast.expr) -> bool:
    one, two = facts.value(tensor), facts.value(mask)
    return isinstance(one, Tensor) and isinstance(two, Tensor) and one.shape is not None and one.shape == two.shape


def _places(facts: FunctionFacts, found: Nonzero, node: ast.expr) -> ast.expr | None:
    """The whole expression of places that mean the same as the mask, in an index."""
    value = facts.value(found.mask)
    line = isinstance(value, Tensor) and value.rank == 1
    parent = facts.parent(node)
    if found.as_tuple:
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return parent if line and constant(parent.slice) == 0 else None
        return node
    if not line:
        return None
    if isinstance(parent, ast.Attribute) and isinstance(call := facts.parent(parent), ast.Call):
        arguments = [constant(a) for a in call.args]
        flat = (parent.attr, arguments) in (
            ("squeeze", [1]),
            ("squeeze", [-1]),
            ("flatten", []),
            ("view", [-1]),
            ("reshape", [-1]),
        )
        return call if flat and not call.keywords else None
    if isinstance(parent, ast.Subscript) and parent.value is node and isinstance(parent.slice, ast.Tuple):
        match parent.slice.elts:
            case [ast.Slice(lower=None, upper=None, step=None), column] if constant(column) == 0:
                return parent
    return None


def _indexed(facts: FunctionFacts, node: ast.expr, mask: ast.expr) -> list[ast.Subscript] | None:
    """What is indexed by places, or by the name that they are bound to; None where these serve for more."""
    if (only := _indexed_by(facts, node)) is not None:
        return [only]
    match facts.parent(node):
        case ast.Assign(targets=[ast.Name(id=name)]):
            pass
        case _:
            return None
    names = [n for n in ast.walk(facts.function) if isinstance(n, ast.Name) and n.id == name]
    loads = [n for n in names if isinstance(n.ctx, ast.Load)]
    found = [t for n in loads if (t := _indexed_by(facts, n)) is not None]
    if len(names) - len(loads) != 1 or not loads or len(found) != len(loads):
        return None
    return found


@answers("memory")
def _changes(facts: FunctionFacts, mask: ast.expr) -> bool:
    """May a mask be written to after its places were found? What is new and has no name is not."""
    statement = facts.statement
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return False
    if shares(facts, mask).fresh:
        return False
    return not isinstance(mask, ast.Name) or escapes(facts, mask.id, statement)


def _mendable(facts: FunctionFacts, use: ast.Subscript, places: ast.expr) -> bool:
    """May what is picked be mended once it is picked by a mask: a store, or what is reduced or stored again?"""
    if isinstance(use.ctx, ast.Store):
        return True
    for above in facts.ancestors(use):
        match above:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _REDUCTIONS:
                return True
            case ast.Call(func=function) if (qualified(facts, function) or "").rpartition(".")[2] in _REDUCTIONS:
                return True
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                return ast.unparse(target.slice) in (ast.unparse(use.slice), ast.unparse(places))
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is use:
                loads = [n for n in ast.walk(facts.function) if isinstance(n, ast.Name) and n.id == name]
                return any(_reduces(facts, n) for n in loads)
            case ast.stmt():
                return False
    return False


_REDUCTIONS = frozenset(
    "sum mean prod norm max min amax amin any all numel size len mse_loss l1_loss smooth_l1_loss huber_loss".split()
)


def _reduces(facts: FunctionFacts, node: ast.AST) -> bool:
    for above in facts.ancestors(node):
        if isinstance(above, ast.Call):
            named = above.func.attr if isinstance(above.func, ast.Attribute) else ast.unparse(above.func)
            if named in _REDUCTIONS:
                return True
        if isinstance(above, ast.stmt):
            return False
    return False


def _indexed_by(facts: FunctionFacts, node: ast.AST) -> ast.Subscript | None:
    parent = facts.parent(node)
    if isinstance(parent, ast.Subscript) and parent.slice is node and is_tensor(facts, parent.value):
        return parent
    return None
