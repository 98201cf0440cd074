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
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, method
from graphmend.transforms.code.text_edits import deletion, replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import Taken, written
from graphmend.transforms.if_conversion.kept_together import together
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.memory import changed_in_place
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
        counted, found = _count(facts, node)
        if counted is None:
            continue
        if found is not None and not repeatable(facts, found.tensor):
            return refuse(NAME, f"`{ast.unparse(found.tensor)}` does more than compute")
        assert isinstance(node, ast.expr)
        return _count_kept(facts, [node], counted, found, [])
    return None


def _count_kept(
    facts: FunctionFacts,
    counts: list[ast.expr],
    counted: ast.expr,
    found: Picked | None,
    dropped: list[ast.stmt],
) -> Fix | Refusal:
    """Expressions that say how many elements of `counted` hold, as 0-d tensors."""
    text = Code(facts.source).operand(counted)
    made = f"{text}.sum()" if is_mask(facts, counted) else f"{text}.count_nonzero()"
    elements = made
    if found is not None and missing_dimensions(facts, found) != 0:
        elements = f"({aligned(facts, found)}).expand_as({Code(facts.source).argument(found.tensor)}).sum()"
    texts = {node: elements if _of_elements(node) else made for node in counts}
    numbers = together(facts, {node: Taken(text, "int64", True) for node, text in texts.items()})
    differences = [*numbers.differences, *(other_shape(facts, found) if found is not None else [])]
    if observed(facts, facts.statement) and any(d.kind == "exception" for d in differences):
        return refuse(NAME, "a `try` sees the exception of the mask")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        texts = written(facts, imports, numbers.texts, numbers.counterparts)
        edits = [replace_expression(facts.source, node, text) for node, text in texts.items()]
        return [*imports.edits(), *edits, *(deletion(facts, statement) for statement in dropped)]

    return offer(NAME, "count with a sum", facts, make, differences)


def _count(facts: FunctionFacts, node: ast.AST) -> tuple[ast.expr | None, Picked | None]:
    """What is counted by an expression, and from what the mask picks, if it is one."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=inner, attr="shape"), slice=ast.Constant(value=0)):
            pass
        case ast.Call(func=ast.Attribute(value=inner, attr="size"), args=[ast.Constant(value=0)], keywords=[]):
            pass
        case ast.Call(func=ast.Name(id="len"), args=[inner], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(value=inner, attr="numel"), args=[], keywords=[]) if picked(facts, inner):
            pass
        case _:
            return None, None
    if call := called(facts, inner, "torch.nonzero", "torch.argwhere"):
        return (call.args[0] if len(call.args) == 1 and not call.keywords else None), None
    if call := method(facts, inner, "nonzero", "argwhere"):
        assert isinstance(call.func, ast.Attribute)
        return (call.func.value if not call.args and not call.keywords else None), None
    found = picked(facts, inner)
    return (found.mask, found) if found is not None else (None, None)


def _of_elements(node: ast.expr) -> bool:
    """Does a count count elements, and not rows?"""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "numel"


def _counted_by_name(facts: FunctionFacts) -> Fix | Refusal | None:
    """`kept = x[m]` and then `len(kept)`: the counts, and the name where it serves for nothing else."""
    found = picked(facts, facts.node)
    match facts.statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is facts.node and found is not None:
            pass
        case _:
            return None
    names = [n for n in ast.walk(facts.function) if isinstance(n, ast.Name) and n.id == name]
    loads = [n for n in names if isinstance(n.ctx, ast.Load)]
    counts = {n: whole for n in loads if (whole := _count_around(facts, n)) is not None}
    body = facts.function.body
    if not counts or len(names) - len(loads) != 1 or facts.body_of(facts.statement) is not body:
        return None
    sources = reads(found.tensor, found.mask)
    behind = body[body.index(facts.statement) + 1 :]
    if sources & stored(behind) or any(changed_in_place(facts, n) for n in sources):
        return refuse(NAME, "what is picked from changes before the picked elements are counted")
    if not is_mask(facts, found.mask) or not repeatable(facts, found.tensor, found.mask):
        return refuse(NAME, f"`{ast.unparse(found.mask)}` is not known to be a mask that is the same each time")
    dropped: list[ast.stmt] = [facts.statement] if len(counts) == len(loads) else []
    if dropped and not replaceable(facts, dropped):
        return refuse(NAME, "the statement shares its line with another one")
    return _count_kept(facts, [*counts.values()], found.mask, found, dropped)


def _count_around(facts: FunctionFacts, node: ast.expr) -> ast.expr | None:
    """The expression that says how many elements, or rows, were picked, of which `node` is the name."""
    for above in (facts.parent(node), facts.parent(facts.parent(node) or node)):
        inside = facts.parent(above) if isinstance(above, ast.Attribute) else above
        match inside:
            case ast.Subscript(value=ast.Attribute(value=of, attr="shape"), slice=ast.Constant(value=0)) if of is node:
                return inside
            case ast.Call(func=ast.Attribute(value=of, attr="size"), args=[ast.Constant(value=0)], keywords=[]) if (
                of is node
            ):
                return inside
            case ast.Call(func=ast.Name(id="len"), args=[of], keywords=[]) if of is node:
                return inside
            case ast.Call(func=ast.Attribute(value=of, attr="numel"), args=[], keywords=[]) if of is node:
                return inside
    return None


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
