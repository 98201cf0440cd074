"""Index with the mask itself instead of with the places at which it holds.

Before:
    rows = torch.where(mask)[0]
    y[rows] = x[rows] * 2

After:
    rows = mask
    y[rows] = x[rows] * 2

Legal when:
    the places are only used as an index (`x[rows]`, `x.index_select(0, rows)`), and counted: those of a mask of one
    dimension, or all dimensions at once. What the index then picks is mended next: it is stored to, or reduced. Places
    of one dimension that are computed with are the numbers from 0 on that the mask picks, where that is mended next.
    The mask is copied where it may be written to later. A count takes a 0-d tensor wherever it is used.

Differs in:
    nothing, where what is indexed is known to have the mask's shape; a longer tensor raises. A count computes as a 0-d
    tensor does.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import has_own_names
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import begins_line
from graphmend.transforms.code.qualified_names import constant, is_tensor, qualified
from graphmend.transforms.code.text_edits import insert_before, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Taken, written
from graphmend.transforms.if_conversion.kept_together import together
from graphmend.transforms.legality.memory import escapes, shares
from graphmend.transforms.legality.rows.counts import asks_length
from graphmend.transforms.legality.rows.masked_elements import (
    Nonzero,
    indexed,
    is_mask,
    nonzero_of,
)
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, prepare, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "mask_index"


class _Uses(NamedTuple):
    """What places serve for."""

    indexed: list[ast.Subscript | ast.Call]
    """What is indexed by them."""
    counts: list[ast.expr]
    """Expressions that say how many there are."""
    names: tuple[ast.Name, ...]
    """The names that they are bound to."""
    target: ast.expr | None
    """What they are bound to, as a whole."""

    @property
    def unpacked(self) -> bool:
        return isinstance(self.target, (ast.Tuple, ast.List))


@asks("effects", "memory", "domain", "numbers", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = nonzero_of(facts, facts.node)
    if found is None or not isinstance(facts.node, ast.expr):
        return None
    whole = _places(facts, found, facts.node)
    if whole is None:
        return _numbers(facts, found, facts.node)
    if not is_tensor(facts, found.mask):
        return refuse(NAME, f"`{ast.unparse(found.mask)}` is not known to be a tensor")
    uses = _used(facts, whole)
    if uses is None:
        return _numbers(facts, found, whole) or refuse(NAME, "the places are used for more than an index")
    if not (uses.counts or any(_mendable(facts, use, whole) for use in uses.indexed)):
        return refuse(NAME, "what is picked is used as it is: the graph breaks at the mask as well")
    code = Code(facts.source)
    text = code.argument(found.mask) if is_mask(facts, found.mask) else f"({code.operand(found.mask)} != 0)"
    if is_mask(facts, found.mask) and _changes(facts, found.mask):
        text = f"{code.operand(found.mask)}.clone()"
    name = fresh(facts, "picked") if uses.unpacked else uses.names[0].id if uses.names else ""
    try:
        numbers = together(facts, {n: Taken(f"{name}.sum()", "int64", True) for n in uses.counts})
    except NeedsPythonNumberError as error:
        return refuse(NAME, str(error))
    differences: list[Difference] = []
    picked = {use: rows for use in uses.indexed if (rows := indexed(facts, use)) is not None}
    for rows in picked.values():
        if not _same_shape(facts, rows.tensor, found.mask):
            says = f"`{ast.unparse(rows.tensor)}` is taken to be as long as the mask; a longer one raises"
            differences.append(Difference("exception", says))
    asked = facts.value(found.mask)
    if not (isinstance(asked, Tensor) and asked.rank):
        says = f"`{ast.unparse(found.mask)}` without dimensions has a place, which raises as an index, and no more"
        differences.append(Difference("exception", says))

    # without dimensions the mask is all or nothing, where its place was the first row
    single = found.as_tuple and not uses.unpacked and not (isinstance(asked, Tensor) and asked.rank)
    single = single and not all(_same_shape(facts, rows.tensor, found.mask) for rows in picked.values())
    if uses.unpacked and not (isinstance(asked, Tensor) and asked.rank):
        differences.append(Difference("exception", "a mask of other dimensions than there are names raises no more"))

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        mask = f"{imports.name('torch.atleast_1d')}({text})" if single else text
        edits = {whole: mask, **written(facts, imports, numbers.texts, numbers.counterparts)}
        if uses.unpacked and uses.target is not None:
            edits |= {uses.target: name, **{use.slice: name for use in uses.indexed if isinstance(use, ast.Subscript)}}
        for use, rows in picked.items():
            if isinstance(use, ast.Call):
                if rows.by is whole:
                    del edits[whole]
                edits[use] = f"{code.operand(rows.tensor)}[{name or text}]"
        return [*imports.edits(), *(replace_expression(facts.source, node, new) for node, new in edits.items())]

    return offer(NAME, "index with the mask itself", facts, make, [*differences, *numbers.differences])


def _numbers(facts: FunctionFacts, found: Nonzero, whole: ast.expr) -> Fix | None:
    """The places as those numbers from 0 on that the mask picks, which are computed with. The first is the least of
    them, the last the greatest.
    """
    mask = facts.value(found.mask)
    if not isinstance(mask, Tensor) or mask.ndarray or mask.rank != 1 or not repeatable(facts, found.mask):
        return None
    parent = facts.parent(whole)
    ends: dict[ast.AST, str] = {}
    if whole is facts.node and not found.as_tuple and (rows := _rows_read(facts, parent)) is not None:
        ends = rows
    elif whole is facts.node and not found.as_tuple:
        if (end := _end(parent, whole)) is None or parent is None:
            return None
        ends = {parent: f"{end}.reshape(1)"}
    elif isinstance(parent, ast.Assign) and isinstance(target := parent.targets[0], ast.Name):
        every = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == target.id]
        if len(parent.targets) != 1 or sum(not isinstance(n.ctx, ast.Load) for n in every) != 1:
            return None
        found_ends = {above: _end(above, n) for n in every if (above := facts.parent(n)) is not None}
        ends = {above: end for above, end in found_ends.items() if end is not None}
    hoisted = not isinstance(found.mask, ast.Name)
    if hoisted and (has_own_names(facts, whole) or not begins_line(facts.source, facts.statement)):
        return None

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        name = fresh(facts, "picked") if hoisted else code.text(found.mask)
        made = [insert_before(facts.source, facts.statement, f"{name} = {code.line(found.mask)}\n")] if hoisted else []
        holds = name if is_mask(facts, found.mask) else f"{name} != 0"
        places = f"{imports.name('torch.arange')}({name}.shape[0], device={name}.device)[{holds}]"
        texts: dict[ast.expr, str] = {} if parent in ends else {whole: places}
        for above, end in ends.items():
            assert isinstance(above, ast.Subscript)
            texts[above] = (places if above is parent else code.operand(above.value)) + end
        return [*imports.edits(), *made, *(replace_expression(facts.source, n, text) for n, text in texts.items())]

    none = Difference("exception", "the first or last place of none raises no more, or otherwise")
    return prepare(NAME, "pick the places as numbers by the mask", facts, make, [none] if ends else [])


def _rows_read(facts: FunctionFacts, binding: ast.AST | None) -> dict[ast.AST, str] | None:
    """What is written for the ends of places, one in a row, that have a name; None where more is read of them than the
    first, the last and how many there are.
    """
    match binding:
        case ast.Assign(targets=[ast.Name(id=name)]):
            every = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
        case _:
            return None
    ends: dict[ast.AST, str] = {}
    for node in (n for n in every if isinstance(n.ctx, ast.Load)):
        above = facts.parent(node)
        if above is not None and (end := _end(above, node)) is not None:
            ends[above] = f"{end}.reshape(1)"
        elif _counted_by(facts, node, unpacked=True) is None or has_own_names(facts, node):
            return None
    return ends if ends and sum(not isinstance(n.ctx, ast.Load) for n in every) == 1 else None


def _end(above: ast.AST | None, node: ast.expr) -> str | None:
    """Which of numbers in order is read, the first or the last, of all that there are."""
    if not isinstance(above, ast.Subscript) or above.value is not node or not isinstance(above.ctx, ast.Load):
        return None
    return {0: ".min()", -1: ".max()"}.get(place) if isinstance(place := constant(above.slice), int) else None


@answers("shapes")
def _same_shape(facts: FunctionFacts, tensor: ast.expr, mask: ast.expr) -> bool:
    one, two = facts.value(tensor), facts.value(mask)
    return isinstance(one, Tensor) and isinstance(two, Tensor) and one.shape is not None and one.shape == two.shape


def _places(facts: FunctionFacts, found: Nonzero, node: ast.expr) -> ast.expr | None:
    """The whole expression of places that mean the same as the mask, in an index."""
    value = facts.value(found.mask)
    line = isinstance(value, Tensor) and value.rank == 1
    parent = facts.parent(node)
    if found.as_tuple and isinstance(parent, ast.Assign) and isinstance(parent.targets[0], ast.Tuple):
        rank = len(parent.targets[0].elts)  # as many as there are dimensions, or unpacking raises
        return node if not isinstance(value, Tensor) or value.rank in (rank, None) else None
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


def _used(facts: FunctionFacts, node: ast.expr) -> _Uses | None:
    """What places serve for, or the names that they are bound to; None where these serve for more than an index and
    a count.
    """
    if (only := _indexed_by(facts, node)) is not None:
        return _Uses([only], [], (), None)
    match facts.parent(node):
        case ast.Assign(targets=[ast.Name() as target]):
            names: tuple[ast.expr, ...] = (target,)
        case ast.Assign(targets=[ast.Tuple(elts=elements) as target]):
            names = tuple(elements)
        case _:
            return None
    bound = tuple(n for n in names if isinstance(n, ast.Name))
    wanted = {n.id for n in bound}
    if len(wanted) < len(names):
        return None
    every = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id in wanted]
    loads = [n for n in every if isinstance(n.ctx, ast.Load)]
    unpacked = isinstance(target, ast.Tuple)
    counts = {n: c for n in loads if (c := _counted_by(facts, n, unpacked=unpacked)) is not None}
    order = [n.id for n in bound]
    indexed = {n: i for n in loads if (i := _indexed_by(facts, n, order if len(order) > 1 else None)) is not None}
    if len(every) - len(loads) != len(names) or not loads or any(n not in counts and n not in indexed for n in loads):
        return None
    return _Uses(list(dict.fromkeys(indexed.values())), list(dict.fromkeys(counts.values())), bound, target)


def _counted_by(facts: FunctionFacts, node: ast.expr, *, unpacked: bool) -> ast.expr | None:
    """The expression that says how many places there are, of which `node` is the name: `len(rows)`, `at[0].numel()`."""
    above = facts.parent(node)
    value = facts.value(node)
    if not (unpacked or isinstance(value, Tensor)):  # a tuple of the places in each dimension
        if not (isinstance(above, ast.Subscript) and above.value is node and isinstance(constant(above.slice), int)):
            return None
        node, above = above, facts.parent(above)
    around = facts.parent(above) if above is not None else None
    match above:
        case ast.Call(args=[of]) if of is node and asks_length(facts, above):
            return above
        case ast.Attribute(attr="numel") if isinstance(around, ast.Call) and not around.args:
            return around
        case ast.Attribute(attr="size") if isinstance(around, ast.Call) and list(map(constant, around.args)) == [0]:
            return around
        case ast.Attribute(attr="shape") if isinstance(around, ast.Subscript) and constant(around.slice) == 0:
            return around
    return None


@answers("memory")
def _changes(facts: FunctionFacts, mask: ast.expr) -> bool:
    """May a mask be written to after its places were found? What is new and has no name is not."""
    statement = facts.statement
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], (ast.Name, ast.Tuple))):
        return False
    if shares(facts, mask).fresh:
        return False
    return not isinstance(mask, ast.Name) or escapes(facts, mask.id, statement)


def _mendable(facts: FunctionFacts, use: ast.Subscript | ast.Call, places: ast.expr) -> bool:
    """May what is picked be mended once it is picked by a mask: a store, or what is reduced or stored again?"""
    if isinstance(use, ast.Subscript) and isinstance(use.ctx, ast.Store):
        return True
    found = indexed(facts, use)
    assert found is not None
    for above in facts.ancestors(use):
        match above:
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _REDUCTIONS:
                return True
            case ast.Call(func=function) if (qualified(facts, function) or "").rpartition(".")[2] in _REDUCTIONS:
                return True
            case ast.Assign(targets=[ast.Subscript() as target]) | ast.AugAssign(target=ast.Subscript() as target):
                return ast.unparse(target.slice) in (ast.unparse(found.by), ast.unparse(places))
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                named = {t.id for t, v in zip(targets, values, strict=False) if isinstance(t, ast.Name) and v is use}
                return _are_reduced(facts, named)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is use:
                return _are_reduced(facts, {name})
            case ast.stmt():
                return False
    return False


_REDUCTIONS = frozenset(
    "sum mean prod norm max min amax amin logsumexp any all numel size len mse_loss l1_loss smooth_l1_loss huber_loss "
    "cross_entropy nll_loss binary_cross_entropy binary_cross_entropy_with_logits kl_div".split()
)


def _are_reduced(facts: FunctionFacts, names: set[str]) -> bool:
    """Is what some names stand for, or what is computed of that, reduced somewhere?"""
    while True:
        loads = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id in names]
        if any(_reduces(facts, n) for n in loads):
            return True
        above = (a for n in loads for a in facts.ancestors(n))
        made = {t.id for a in above if isinstance(a, ast.Assign) for t in a.targets if isinstance(t, ast.Name)}
        if made <= names:
            return False
        names = names | made


def _reduces(facts: FunctionFacts, node: ast.AST) -> bool:
    for above in facts.ancestors(node):
        if isinstance(above, ast.Call):
            named = above.func.attr if isinstance(above.func, ast.Attribute) else ast.unparse(above.func)
            if named in _REDUCTIONS:
                return True
        if isinstance(above, ast.stmt):
            return False
    return False


def _indexed_by(facts: FunctionFacts, node: ast.AST, order: list[str] | None = None) -> ast.Subscript | ast.Call | None:
    """What is indexed by places alone, or by the names of those in each dimension, in `order`."""
    index, parent = node, facts.parent(node)
    if order is not None:
        if not isinstance(parent, ast.Tuple) or [n.id for n in parent.elts if isinstance(n, ast.Name)] != order:
            return None
        index, parent = (parent, facts.parent(parent)) if len(parent.elts) == len(order) else (node, None)
    above = facts.parent(parent) if isinstance(parent, ast.keyword) else parent
    if isinstance(above, (ast.Subscript, ast.Call)) and (found := indexed(facts, above)) and found.by is index:
        return above
    return None
