"""Reduce all elements under a mask instead of those that a mask picks out.

Before:
    total = (x[x > 0] ** 2).sum()

After:
    total = torch.where(x > 0, x ** 2, 0).sum()

Legal when:
    the mask is a bool tensor over the leading dimensions of what it picks from; the picked elements go through
    nothing but elementwise arithmetic, with numbers, 0-d tensors and elements picked by the same mask, before a
    reduction that has a value at which an element does not count: a sum, mean, product, norm, minimum, maximum,
    `any`, `all`, deviation, median, quantile, or a loss. A loss of classes leaves out what is not picked by its own
    `ignore_index`. A reduction inside of that is mended first.

Differs in:
    sums and products of floating numbers may round differently. A minimum or maximum of nothing gives the least or
    greatest value instead of an exception, a median or quantile leaves out NaN. A deviation of zero has no gradient.
    Equal elements share the gradient of a maximum along a dimension, which one of them had.
    A mask of another shape, and a mean of whole numbers, raise no more, unless shapes and dtypes are known.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import constant, number_type, qualified
from graphmend.transforms.code.text_edits import deletion, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.rows.masked_elements import (
    Picked,
    one_by_one,
    picked,
    works_on_each,
)
from graphmend.transforms.legality.writes.handed import handed_between
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.masked_losses import loss_of
from graphmend.transforms.rewrites.named_parts import bare, named
from graphmend.transforms.rewrites.under_mask import REDUCTIONS, Elements, NotReducibleError, Reduction, same_pick

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "masked_reduce"
_TITLE = "reduce all elements under the mask"


@asks("effects", "totality", "memory", "domain", "dtypes", "shapes", "gradients", "context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = picked(facts, facts.node)
    if found is None or not isinstance(facts.node, ast.expr) or _stored_to(facts, facts.node):
        return None
    try:
        name = _bound_to(facts, facts.node)
        if name is None:
            return _offer(facts, found, [facts.node], [])
        return _offer(facts, found, _loads(facts, found, name), [facts.statement])
    except NotReducibleError as error:
        return refuse(NAME, str(error))


def _offer(facts: FunctionFacts, found: Picked, uses: list[ast.expr], dropped: list[ast.stmt]) -> Fix | Refusal:
    imports = Imports(facts)
    inner: dict[ast.expr, str] = {}
    parts: dict[str, str] = {}
    differences: list[Difference] = []
    reductions: list[Reduction] = []
    waiting = list(uses)
    while waiting:  # those inside of others first
        ready, failed = [], NotReducibleError("")
        for use in waiting:
            try:
                ready.append((use, _reduction(facts, found, use, {*uses}, inner)))
            except NotReducibleError as error:
                failed = error
        if not ready:
            raise failed
        for use, reduction in ready:
            elements = Elements(facts, found, {*uses}, inner)
            if reduction.whole not in inner:
                inner[reduction.whole] = elements.reduced(reduction, imports)
                reductions.append(reduction)
                parts |= elements.parts
                differences += elements.differences
            waiting.remove(use)
    if dropped and not replaceable(facts, dropped):
        return refuse(NAME, "the statement shares its line with another one")
    if observed(facts, facts.statement) and any(d.kind == "exception" for d in differences):
        return refuse(NAME, "a `try` sees the exceptions of the reduction")
    outermost = [
        r.whole for r in reductions if not any(r.whole is not o.whole and _inside(r.whole, o.whole) for o in reductions)
    ]

    def make() -> list[TextEdit]:
        first, texts = named(facts, {whole: inner[whole] for whole in outermost}, parts)
        edits = [*first, *(replace_expression(facts.source, n, _in_place(facts, n, text)) for n, text in texts.items())]
        return [*imports.edits(), *edits, *(deletion(facts, statement) for statement in dropped)]

    return offer(NAME, _TITLE, facts, make, differences)


def _in_place(facts: FunctionFacts, node: ast.expr, text: str) -> str:
    """The new text of an expression, without brackets that its place does not need."""
    return bare(text) if isinstance(facts.parent(node), (ast.Return, ast.Assign, ast.Tuple, ast.keyword)) else text


def _inside(node: ast.expr, outer: ast.expr) -> bool:
    return any(n is node for n in nodes_in(outer))


# From the picked elements up to their reduction


def _reduction(
    facts: FunctionFacts, found: Picked, node: ast.expr, nodes: set[ast.expr], inner: Mapping[ast.expr, str]
) -> Reduction:
    """The reduction that picked elements end in, each by itself."""
    elements = Elements(facts, found, nodes, inner)
    while True:
        parent = facts.parent(node)
        if isinstance(parent, ast.Attribute) and isinstance(call := facts.parent(parent), ast.Call):
            if call.func is parent and parent.attr in REDUCTIONS and not works_on_each(facts, call):
                _check_each(facts, elements, node)
                return _given(facts, found, Reduction(call, node, parent.attr), call.args)
            node = _elementwise(facts, call)
        elif isinstance(parent, ast.Call) and node in parent.args:
            last = (qualified(facts, parent.func) or "").rpartition(".")[2]
            if (loss := loss_of(facts, parent)) is not None:
                for argument in loss.arguments:
                    _check_each(facts, elements, argument, picks=True)
                return Reduction(parent, parent, last, loss=loss)
            reduces = last in REDUCTIONS and _of_torch(facts, parent) and not works_on_each(facts, parent)
            if parent.args[0] is node and reduces:
                _check_each(facts, elements, node)
                return _given(facts, found, Reduction(parent, node, last), parent.args[1:])
            node = _elementwise(facts, parent)
        elif isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.Compare)):
            node = parent
        else:
            raise NotReducibleError("the picked elements are used as they are")


def _elementwise(facts: FunctionFacts, call: ast.Call) -> ast.expr:
    """A call that works on each element by itself; what the program's own functions do is judged with the whole."""
    if not works_on_each(facts, call) and not isinstance(facts.value(call.func), Function):
        last = (qualified(facts, call.func) or "").rpartition(".")[2]
        raise NotReducibleError(f"`{last or ast.unparse(call.func)}` of picked elements has no form that works on all")
    return call


def _check_each(facts: FunctionFacts, elements: Elements, body: ast.expr, *, picks: bool = False) -> None:
    """Is what is reduced computed from one element of each pick, from numbers and from 0-d tensors? With `picks`: from
    one at least.
    """
    found = {n for n in nodes_in(body) if isinstance(n, ast.expr) and same_pick(facts, elements, n)}
    if (picks and not found) or not one_by_one(facts, body, found | {*elements.inner}):
        raise NotReducibleError(
            f"`{ast.unparse(body)}` is not computed from elements picked by one mask, one at a time"
        )


def _given(facts: FunctionFacts, found: Picked, reduction: Reduction, arguments: list[ast.expr]) -> Reduction:
    """A reduction with what it is given: the dimension in which a mask picks, how many degrees of
    freedom are taken off, which quantile.
    """
    call = reduction.whole
    assert isinstance(call, ast.Call)
    how, given = reduction.how, list(arguments)
    keywords = {k.arg or "": k.value for k in call.keywords}
    if how in ("max", "min") and (given or keywords) and (values := _values_of(facts, call)) is not None:
        how = f"a{how}"
        reduction = replace(reduction, whole=values, how=how)
    option: ast.expr | None = None
    if how in ("std", "var"):
        option = keywords.pop("unbiased", None) or keywords.pop("correction", None)
        if given and isinstance(constant(given[0]), bool):
            option = given.pop(0)
        known = option is None or constant(option) in (0, 1)
    elif how == "quantile":
        option = given.pop(0) if given else None
        known = option is not None and number_type(facts, option) is not None and not given and not keywords
    else:
        known = True
    given += [keywords.pop(name) for name in ("dim", "axis") if name in keywords]
    value = facts.value(found.mask)
    rows = len(given) == 1 and constant(given[0]) == 0 and not (isinstance(value, Tensor) and value.rank == 0)
    rows = rows and how in ("sum", "mean", "std", "var", "amax", "amin", "logsumexp")
    if not known or keywords or (given and not rows) or (how == "logsumexp" and not rows):
        raise NotReducibleError(f"`{ast.unparse(call)}` is no reduction of all picked elements")
    return replace(reduction, rows=rows, option=option)


def _values_of(facts: FunctionFacts, call: ast.Call) -> ast.expr | None:
    """The values that are taken of what `max` or `min` gives along a dimension, where the places are not."""
    match facts.parent(call):
        case ast.Attribute(attr="values") as taken:
            return taken
        case ast.Subscript(slice=index, ctx=ast.Load()) as taken if constant(index) == 0:
            return taken
    return None


def _of_torch(facts: FunctionFacts, call: ast.Call) -> bool:
    return (qualified(facts, call.func) or "").rpartition(".")[0] in ("torch", "torch.linalg")


# Picked elements that have a name


def _stored_to(facts: FunctionFacts, node: ast.expr) -> bool:
    return isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)


def _bound_to(facts: FunctionFacts, node: ast.expr) -> str | None:
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is node:
            return name
    return None


def _loads(facts: FunctionFacts, found: Picked, name: str) -> list[ast.expr]:
    """The reads of a name that is bound once, to picked elements."""
    nodes = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
    loads: list[ast.expr] = [n for n in nodes if isinstance(n.ctx, ast.Load)]
    if len(nodes) - len(loads) != 1 or not loads or facts.body_of(facts.statement) is not facts.function.body:
        raise NotReducibleError("the picked elements are used as they are")
    sources = reads(found.tensor, found.mask)
    body = facts.function.body
    behind = body[body.index(facts.statement) + 1 :]
    if sources & stored(behind) or any(changed_in_place(facts, n) for n in sources):
        raise NotReducibleError("what is picked from changes before the picked elements are used")
    if (call := handed_between(facts, [found.tensor, found.mask], loads)) is not None:
        raise NotReducibleError(f"`{ast.unparse(call)}` may change what is picked from before it is reduced")
    return loads
