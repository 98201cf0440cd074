"""Work on all elements under a mask instead of on those that a mask picks out.

Before:
    total = x[x > 0].sum()
    y[m] = x[m] * 2

After:
    total = torch.where(x > 0, x, 0).sum()
    y.copy_(torch.where(m, x * 2, y))

Legal when:
    the mask is a bool tensor of the shape of what it picks from, and the picked elements are only summed,
    averaged, counted or tested, or computed on one by one and stored under the same mask.

Differs in:
    a count is a 0-d tensor instead of a Python number; what is computed on elements outside the mask is thrown
    away, and may reach gradients as NaN.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.values import Tensor
from graphmend.transforms.branches import gradient_differences
from graphmend.transforms.code import Code
from graphmend.transforms.edits import replace, replaceable, swap
from graphmend.transforms.fix import Fix, Refusal, TextEdit
from graphmend.transforms.imports import Imports
from graphmend.transforms.legality import speculate
from graphmend.transforms.names import called, constant, is_tensor, method
from graphmend.transforms.offer import offer, refuse
from graphmend.transforms.tolerant import NotTolerantError, Uses

if TYPE_CHECKING:
    from graphmend.analysis.facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "masked"


def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    try:
        for form in (_counted, _reduced, _partitioned, _stored, _stored_one_by_one):
            if (answer := form(facts)) is not None:
                return answer
    except NotTolerantError as error:
        return refuse(NAME, str(error))
    return None


def picked(facts: FunctionFacts, node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """(tensor, mask) of `x[m]` or `x.masked_select(m)`."""
    match node:
        case ast.Subscript(value=value, slice=mask) if is_mask(facts, mask) and is_tensor(facts, value):
            return value, mask
        case ast.Call(func=ast.Attribute(value=value, attr="masked_select"), args=[mask]) if is_tensor(facts, value):
            return value, mask
        case ast.Call(args=[value, mask], keywords=[]) if called(facts, node, "torch.masked_select"):
            return value, mask
    return None


def is_mask(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Tensor) and value.dtype == "bool" and not value.ndarray


def whole(facts: FunctionFacts, tensor: ast.expr, mask: ast.expr) -> list[str] | None:
    """Differences where a mask may have fewer dimensions than its tensor; None where it has for certain."""
    one, two = facts.value(tensor), facts.value(mask)
    assert isinstance(one, Tensor)
    assert isinstance(two, Tensor)
    if one.shape is not None and one.shape == two.shape:
        return []
    if one.rank is not None and one.rank == two.rank:
        return []
    if one.rank is not None and two.rank is not None:
        return None
    return ["the mask is taken to have the shape of the tensor"]


def _counted(facts: FunctionFacts) -> Fix | Refusal | None:
    """`m.nonzero().shape[0]`, `len(x[m])`, `x[m].numel()`: how many elements there are."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, ast.stmt):
            return None
        counted = _count(facts, node)
        if counted is None:
            continue
        uses = Uses(facts, "int64")
        assert isinstance(node, ast.expr)
        uses.follow(node)
        text = Code(facts.source).operand(counted)
        made = f"{text}.sum()" if is_mask(facts, counted) else f"{text}.count_nonzero()"
        changed = swap(facts.source, node, made)
        differences = ["the count is a 0-d tensor instead of a Python number", *uses.differences]
        return offer(NAME, "count with a sum", facts, lambda changed=changed: [changed], differences)  # type: ignore[misc]
    return None


def _count(facts: FunctionFacts, node: ast.AST) -> ast.expr | None:
    """What is counted by an expression."""
    match node:
        case ast.Subscript(value=ast.Attribute(value=inner, attr="shape"), slice=ast.Constant(value=0)):
            pass
        case ast.Call(func=ast.Attribute(value=inner, attr="size"), args=[ast.Constant(value=0)]):
            pass
        case ast.Call(func=ast.Name(id="len"), args=[inner]):
            pass
        case ast.Call(func=ast.Attribute(value=inner, attr="numel"), args=[]) if picked(facts, inner):
            pass
        case _:
            return None
    if call := called(facts, inner, "torch.nonzero", "torch.argwhere"):
        return call.args[0] if len(call.args) == 1 and not call.keywords else None
    if call := method(facts, inner, "nonzero", "argwhere"):
        assert isinstance(call.func, ast.Attribute)
        return call.func.value if not call.args and not call.keywords else None
    if found := picked(facts, inner):
        differences = whole(facts, *found)
        return found[1] if differences == [] else None
    return None


def _reduced(facts: FunctionFacts) -> Fix | Refusal | None:
    """`x[m].sum()`, `.mean()`, `.any()`, `.all()`."""
    found = picked(facts, facts.node)
    above = facts.parent(facts.node)
    call = facts.parent(above) if above is not None else None
    if (
        found is None
        or not isinstance(above, ast.Attribute)
        or not isinstance(call, ast.Call)
        or call.func is not above
    ):
        return None
    if above.attr not in ("sum", "mean", "any", "all") or call.args or call.keywords:
        return refuse(NAME, f"`{above.attr}` of picked elements has no form that works on all elements")
    tensor, mask = found
    differences = whole(facts, tensor, mask)
    if differences is None:
        return refuse(NAME, "the mask has fewer dimensions than the tensor")

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        if above.attr == "any":
            text = f"({code.operand(tensor)} & {code.operand(mask)}).any()"
        elif above.attr == "all":
            text = f"({code.operand(tensor)} | ~{code.operand(mask)}).all()"
        else:
            text = f"{imports.name('torch.where')}({code.argument(mask)}, {code.argument(tensor)}, 0).sum()"
            if above.attr == "mean":
                text = f"({text} / {code.operand(mask)}.sum())"
        return [*imports.edits(), swap(facts.source, call, text)]

    return offer(NAME, f"compute `{above.attr}` under the mask", facts, make, [*differences, *_rounding(above.attr)])


def _rounding(function: str) -> list[str]:
    return ["sums may round differently, as they are made in another order"] if function in ("sum", "mean") else []


def _partitioned(facts: FunctionFacts) -> Fix | Refusal | None:
    """`torch.cat([x[m], x[~m]])`: a stable partition."""
    call = next((n for n in (facts.node, *facts.ancestors(facts.node)) if isinstance(n, ast.Call)), None)
    if call is None or not called(facts, call, "torch.cat") or len(call.args) != 1 or call.keywords:
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
    mask, tensor = facts.value(first[1]), facts.value(first[0])
    if not (isinstance(mask, Tensor) and mask.rank == 1):
        return refuse(NAME, "the mask is not known to have one dimension")
    assert isinstance(tensor, Tensor)

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        order = f"{imports.name('torch.argsort')}(~{code.operand(first[1])}, stable=True)"
        return [*imports.edits(), swap(facts.source, call, f"{code.operand(first[0])}[{order}]")]

    return offer(NAME, "partition with a stable argsort", facts, make, opposite)


def _opposite(one: ast.expr, two: ast.expr) -> list[str] | None:
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
                    [] if isinstance(p, (ast.Eq, ast.NotEq)) else ["NaN, which neither mask picks, stays in the result"]
                )
    return None


def _stored(facts: FunctionFacts) -> Fix | Refusal | None:
    """`y[m] = f(x[m])` and `y[m] += v`."""
    statement = facts.statement
    match statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value):
            operator = None
        case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value):
            operator = op
        case _:
            return None
    found = picked(facts, target)
    if found is None:
        return None
    tensor, mask = found
    differences = whole(facts, tensor, mask)
    if differences is None:
        return refuse(NAME, "the mask has fewer dimensions than the tensor")
    replaced: dict[ast.expr, str] = {}
    code = Code(facts.source)
    for node in ast.walk(value):
        inner = picked(facts, node)
        if inner is not None and isinstance(node, ast.expr):
            if ast.unparse(inner[1]) != ast.unparse(mask):
                return refuse(NAME, "elements are picked by another mask than they are stored by")
            replaced[node] = code.operand(inner[0])
    if not _one_by_one(facts, value, replaced):
        return refuse(NAME, f"`{ast.unparse(value)}` is not known to compute one element at a time")
    speculation = speculate(facts, value)
    if speculation.blockers:
        return refuse(NAME, speculation.blockers[0])
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        target_text, mask_text = code.operand(tensor), code.argument(mask)
        text = code.argument(value, replaced)
        if operator is not None:
            text = f"{target_text} {_SIGNS[type(operator)]} {code.operand(value, replaced)}"
        where = f"{imports.name('torch.where')}({mask_text}, {text}, {target_text})"
        return [*imports.edits(), replace(facts.source, [statement], f"{target_text}.copy_({where})\n")]

    differences += [d for d in speculation.differences if "[" not in d]
    differences += gradient_differences(facts, statement, [[value]])
    return offer(NAME, "store under the mask with torch.where", facts, make, differences)


_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}


def _one_by_one(facts: FunctionFacts, node: ast.expr, replaced: dict[ast.expr, str]) -> bool:
    """Arithmetic on picked elements and numbers."""
    if node in replaced or isinstance(constant(node), (int, float)):
        return True
    if isinstance(node, ast.BinOp):
        return (
            type(node.op) in _SIGNS
            and _one_by_one(facts, node.left, replaced)
            and _one_by_one(facts, node.right, replaced)
        )
    if isinstance(node, ast.UnaryOp):
        return _one_by_one(facts, node.operand, replaced)
    value = facts.value(node)
    return isinstance(value, Tensor) and value.rank == 0


def _stored_one_by_one(facts: FunctionFacts) -> Fix | Refusal | None:
    """`for i in m.nonzero(): y[i] = 1`."""
    statement = facts.statement
    if not isinstance(statement, ast.For) or statement.orelse or not isinstance(statement.target, ast.Name):
        return None
    call = method(facts, statement.iter, "nonzero") or called(facts, statement.iter, "torch.nonzero")
    if call is None or call.keywords:
        return None
    mask = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
    match statement.body:
        case [ast.Assign(targets=[ast.Subscript(value=tensor, slice=ast.Name(id=name))], value=value)] if (
            name == statement.target.id
        ):
            pass
        case _:
            return refuse(NAME, "the loop does more than store one number at each place")
    known = facts.value(mask) if mask is not None else None
    if not isinstance(known, Tensor) or known.rank != 1 or not is_tensor(facts, tensor) or constant(value) is None:
        return refuse(NAME, "the places are not known to be those of a mask of one dimension")
    assert mask is not None

    def make() -> list[TextEdit]:
        code = Code(facts.source)
        test = code.argument(mask) if known.dtype == "bool" else f"{code.operand(mask)} != 0"
        return [replace(facts.source, [statement], f"{code.operand(tensor)}[{test}] = {code.text(value)}\n")]

    return offer(NAME, "store under the mask", facts, make, ["the loop's variable is not bound any more"])
