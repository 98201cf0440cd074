"""Count, or sort apart, all elements under a mask instead of those that a mask picks out.

Before:
    n = len(x[x > 0])
    parts = torch.cat([x[m], x[~m]])

After:
    n = (x > 0).sum()
    parts = x[torch.argsort(~m, stable=True)]

Legal when:
    the mask is a bool tensor over the leading dimensions of what it picks from; to sort apart, of one dimension, and
    the second mask is its opposite. Every use of the count takes a 0-d tensor.

Differs in:
    a count computes as a 0-d tensor does, not as a Python number: whole numbers wrap around, an attribute holds a
    tensor. A mask of another shape raises no more, unless shapes are known. NaN, which neither of two comparisons
    picks, stays in what is sorted apart.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant
from graphmend.transforms.code.text_edits import deletion, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Taken, written
from graphmend.transforms.if_conversion.kept_together import together
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.memory import changed_in_place
from graphmend.transforms.legality.rows.counts import Asked, Places, asked_for, places
from graphmend.transforms.legality.rows.masked_elements import (
    Picked,
    aligned,
    is_mask,
    missing_dimensions,
    other_shape,
    picked,
)
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.legality.writes.handed import handed_between
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "masked"


@asks("effects", "memory", "domain", "numbers", "shapes", "gradients", "context", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    try:
        for form in (_counted, _counted_by_name, _partitioned):
            if (answer := form(facts)) is not None:
                return answer
    except NeedsPythonNumberError as error:
        return refuse(NAME, str(error))
    return None


def _counted(facts: FunctionFacts) -> Fix | Refusal | None:
    """`m.nonzero().shape[0]`, `len(x[m])`, `x[m].numel()`: how many elements there are."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, ast.stmt):
            return None
        asked = asked_for(facts, node)
        found = _source(facts, asked[0]) if asked is not None else None
        if asked is None or found is None:
            continue
        if isinstance(found, Picked) and not repeatable(facts, found.tensor):
            return refuse(NAME, f"`{ast.unparse(found.tensor)}` does more than compute")
        assert isinstance(node, ast.expr)
        return _count_kept(facts, {node: asked[1]}, found, [])
    return None


def _source(facts: FunctionFacts, node: ast.expr) -> Picked | Places | None:
    """What a mask picks, or its places."""
    found = picked(facts, node)
    return found if found is not None else places(facts, node)


def _count_kept(
    facts: FunctionFacts, counts: Mapping[ast.expr, Asked], found: Picked | Places, dropped: list[ast.stmt]
) -> Fix | Refusal:
    """Expressions that say how many there are, as 0-d tensors."""
    text = Code(facts.source).operand(found.mask)
    made = f"{text}.sum()" if is_mask(facts, found.mask) else f"{text}.count_nonzero()"

    def count(asked: Asked) -> str:
        if isinstance(found, Places):
            times = found.times(facts, asked)
            return f"({made}{times})" if times else made
        if asked == "elements" and missing_dimensions(facts, found) != 0:
            return f"({aligned(facts, found)}).expand_as({Code(facts.source).argument(found.tensor)}).sum()"
        return made

    numbers = together(facts, {node: Taken(count(asked), "int64", True) for node, asked in counts.items()})
    differences = [*numbers.differences, *(other_shape(facts, found) if isinstance(found, Picked) else [])]
    if isinstance(found, Places) and not found.there(facts):
        says = f"`{ast.unparse(found.mask)}` is taken to have a dimension {found.column}, of which the places are asked"
        differences.append(Difference("exception", says))
    if observed(facts, facts.statement) and any(d.kind == "exception" for d in differences):
        return refuse(NAME, "a `try` sees the exception of the mask")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        texts = written(facts, imports, numbers.texts, numbers.counterparts)
        edits = [replace_expression(facts.source, node, text) for node, text in texts.items()]
        return [*imports.edits(), *edits, *(deletion(facts, statement) for statement in dropped)]

    return offer(NAME, "count with a sum", facts, make, differences)


def _counted_by_name(facts: FunctionFacts) -> Fix | Refusal | None:
    """`kept = x[m]` and then `len(kept)`: the counts, and the name where it serves for nothing else."""
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if facts.node in nodes_in(value):
            found = _source(facts, value)
        case _:
            return None
    if found is None:
        return None
    names = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
    loads = [n for n in names if isinstance(n.ctx, ast.Load)]
    counts: dict[ast.expr, Asked] = {}
    for load in loads:
        parent = facts.parent(load)
        around = facts.parent(parent) if isinstance(parent, ast.Attribute) else parent
        asked = asked_for(facts, around)
        if isinstance(around, ast.expr) and asked is not None and asked[0] is load:
            counts[around] = asked[1]
    body = facts.function.body
    if not counts or len(names) - len(loads) != 1 or facts.body_of(facts.statement) is not body:
        return None
    if isinstance(found, Places) and len(counts) < len(loads):
        return None  # the places are needed all the same
    parts = [found.mask, *([found.tensor] if isinstance(found, Picked) else [])]
    sources = reads(*parts)
    behind = body[body.index(facts.statement) + 1 :]
    if sources & stored(behind) or any(changed_in_place(facts, n) for n in sources):
        return refuse(NAME, "what is picked from changes before the picked elements are counted")
    if (call := handed_between(facts, parts, [*counts])) is not None:
        return refuse(NAME, f"`{ast.unparse(call)}` may change what is picked from before it is counted")
    if not (is_mask(facts, found.mask) or isinstance(found, Places)) or not repeatable(facts, *parts):
        return refuse(NAME, f"`{ast.unparse(found.mask)}` is not known to be a mask that is the same each time")
    dropped: list[ast.stmt] = [facts.statement] if len(counts) == len(loads) else []
    if dropped and not replaceable(facts, dropped):
        return refuse(NAME, "the statement shares its line with another one")
    return _count_kept(facts, counts, found, dropped)


def _partitioned(facts: FunctionFacts) -> Fix | Refusal | None:
    """`torch.cat([x[m], x[~m]])`: a stable partition."""
    call = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.Call)), None)
    if (
        call is None
        or not called(facts, call, "torch.cat")
        or len(call.args) != 1
        or any(_other_dim(k) for k in call.keywords)
    ):
        return None
    match call.args[0]:
        case ast.List(elts=[one, two]) | ast.Tuple(elts=[one, two]):
            first, second = picked(facts, one), picked(facts, two)
        case _:
            return None
    if first is None or second is None or ast.unparse(first[0]) != ast.unparse(second[0]):
        return None
    opposite = _opposite(first[1], second[1])
    if opposite is None:
        return refuse(NAME, "the two masks are not known to be opposites")
    if not repeatable(facts, *first, *second):
        return refuse(NAME, "what is picked from, or the mask, is not the same each time it is evaluated")
    mask, tensor = facts.value(first[1]), facts.value(first[0])
    if not (isinstance(mask, Tensor) and mask.rank == 1):
        return refuse(NAME, "the mask is not known to have one dimension")
    assert isinstance(tensor, Tensor)

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        order = f"{imports.name('torch.argsort')}(~{code.operand(first[1])}, stable=True)"
        return [*imports.edits(), replace_expression(facts.source, call, f"{code.operand(first[0])}[{order}]")]

    differences = [*opposite, *other_shape(facts, first)]
    if tensor.rank != 1:
        differences.append(Difference("strides", "rows of a tensor that is not contiguous stay so"))
    if observed(facts, facts.statement) and any(d.kind == "exception" for d in differences):
        return refuse(NAME, "a `try` sees the exception of the mask")
    return offer(NAME, "partition with a stable argsort", facts, make, differences)


def _other_dim(keyword: ast.keyword) -> bool:
    return keyword.arg not in ("dim", "axis") or constant(keyword.value) != 0


def _opposite(one: ast.expr, two: ast.expr) -> list[Difference] | None:
    """Differences where two masks are opposites but for NaN; None where they are not known to be."""
    if isinstance(two, ast.UnaryOp) and isinstance(two.op, ast.Invert) and ast.unparse(two.operand) == ast.unparse(one):
        return []
    pairs = {
        (ast.Gt, ast.LtE),
        (ast.Lt, ast.GtE),
        (ast.GtE, ast.Lt),
        (ast.LtE, ast.Gt),
        (ast.Eq, ast.NotEq),
        (ast.NotEq, ast.Eq),
    }
    match one, two:
        case ast.Compare(left=a, ops=[p], comparators=[b]), ast.Compare(left=c, ops=[q], comparators=[d]):
            if (type(p), type(q)) in pairs and ast.unparse(a) == ast.unparse(c) and ast.unparse(b) == ast.unparse(d):
                return (
                    []
                    if isinstance(p, (ast.Eq, ast.NotEq))
                    else [Difference("shape", "NaN, which neither mask picks, stays in the result")]
                )
    return None
