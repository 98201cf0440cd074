"""Store under a mask with `torch.where` instead of only where the mask picks.

Before:
    y[m] = x[m] * 2

After:
    y.copy_(torch.where(m, x * 2, y))

Legal when:
    the mask is a bool tensor over the leading dimensions of what it picks from, and what is stored is computed one
    element or one row at a time (by a linear layer, say), from numbers, 0-d tensors and elements picked by the same
    mask. A reduction of picked elements is no such thing: it is mended first. What is stored is cast where its dtype
    may be another. A mask may also pick places, `y[order[m]] = 0`, each of which comes once, as sorting makes them.

Differs in:
    what is computed on elements outside the mask is thrown away, and may reach gradients as NaN. A mask of another
    shape, a value of another dtype and expanded memory raise otherwise, unless shapes, dtypes and memory are known.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.positions import replaceable
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method, number_type
from graphmend.transforms.code.text_edits import replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.dtypes import kind
from graphmend.transforms.legality.gradients.sides import gradient_differences
from graphmend.transforms.legality.in_place import apart, dense, intact, linear, linear_operator
from graphmend.transforms.legality.memory import known_to_share, may_share
from graphmend.transforms.legality.rows.masked_elements import (
    Picked,
    aligned,
    is_line,
    missing_dimensions,
    one_by_one,
    other_rank,
    other_shape,
    picked,
    picks_in,
    same_dtype,
    unlike,
)
from graphmend.transforms.legality.rows.picked_rows import ALL_ROWS, by_rows
from graphmend.transforms.legality.rows.places import all_different
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "masked_store"


@asks("effects", "totality", "memory", "domain", "dtypes", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    for form in (_stored, _stored_at_places, _stored_one_by_one):
        if (answer := form(facts)) is not None:
            return answer
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
    code = Code(facts.source)
    if not repeatable(facts, tensor, mask):
        return refuse(NAME, f"`{ast.unparse(target)}` would be evaluated more than once")
    shared = kind(facts, tensor) in ("bool", None) and may_share(facts, tensor, mask)
    if shared and known_to_share(facts, tensor, mask):
        return refuse(NAME, f"`{ast.unparse(mask)}` is a part of `{ast.unparse(tensor)}`, which raises")
    if operator is not None and type(operator) not in _SIGNS:
        return refuse(NAME, f"`{ast.unparse(statement)}` is no arithmetic that is known")
    picks = picks_in(facts, value, mask)
    if any(picked(facts, n) and n not in picks for n in nodes_in(value) if isinstance(n, ast.expr)):
        return refuse(NAME, "elements are picked by another mask than they are stored by")
    same = not picks and _row_for_all(facts, value, found)
    rows = not same and not one_by_one(facts, value, picks)
    if rows and not by_rows(facts, value, picks, flat=is_line(facts, mask)):
        return refuse(NAME, f"`{ast.unparse(value)}` is not known to compute one element, or one row, at a time")
    if not rows and any(other_rank(facts, p.tensor, tensor) for p in picks.values()):
        return refuse(NAME, f"`{ast.unparse(value)}` is of tensors of other numbers of dimensions")
    plain = operator is None or linear_operator(facts, operator, value)
    replaced: dict[ast.expr, str] = {}
    for node, inner in picks.items():
        harmless = (plain and linear(facts, value)) or apart(facts, inner.tensor, tensor)
        replaced[node] = intact(facts, statement, code.operand(inner.tensor), linear=harmless)
    if blockers := speculate(facts, value).blockers:
        return refuse(NAME, blockers[0])
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    cast = _cast(facts, tensor, operator, value)
    if isinstance(cast, Refusal):
        return cast
    casts, differences = cast

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        target_text, mask_text = code.operand(tensor), aligned(facts, found)
        text = code.argument(value, replaced)
        if operator is not None:
            read = intact(facts, statement, target_text, linear=plain)
            text = f"{read} {_SIGNS[type(operator)]} {code.operand(value, replaced)}"
        if casts:
            text = f"{text if text.isidentifier() else f'({text})'}.to({target_text}.dtype)"
        where = f"{imports.name('torch.where')}({mask_text}, {text}, {target_text})"
        return [*imports.edits(), replace_statements(facts.source, [statement], f"{target_text}.copy_({where})\n")]

    differences += [*(ALL_ROWS if rows else ()), *other_shape(facts, found)]
    for inner in picks.values():
        differences += unlike(facts, inner.tensor, tensor)
    if not dense(facts, statement, tensor):
        differences.append(_OVERLAP)
    if shared:
        says = f"where `{ast.unparse(mask)}` is a part of `{ast.unparse(tensor)}` the store no longer raises"
        differences.append(Difference("exception", says))
    differences += gradient_differences(facts, statement, [[value]])
    return offer(NAME, "store under the mask with torch.where", facts, make, differences)


def _row_for_all(facts: FunctionFacts, value: ast.expr, found: Picked) -> bool:
    """Has what is stored no more dimensions than one row that the mask picks, so that every row gets the same?"""
    missing, known = missing_dimensions(facts, found), facts.value(value)
    return isinstance(known, Tensor) and None not in (missing, known.rank) and (known.rank or 0) <= (missing or 0)


def _stored_at_places(facts: FunctionFacts) -> Fix | Refusal | None:
    """`y[order[m]] = v`: at all places of an order, the others keep what they have."""
    statement = facts.statement
    match statement:
        case ast.Assign(targets=[ast.Subscript(value=tensor, slice=ast.Subscript() as places)], value=value):
            found = picked(facts, places)
        case _:
            return None
    if found is None or not is_tensor(facts, tensor):
        return None
    into, of = facts.value(tensor), facts.value(found.tensor)
    ranks = {v.rank if isinstance(v, Tensor) else None for v in (into, of)}
    if not ranks <= {1, None}:
        return refuse(NAME, "what is stored to, or the places, have several dimensions")
    if not all_different(facts, found.tensor):
        return refuse(NAME, f"a place may come twice in `{ast.unparse(found.tensor)}`")
    if not repeatable(facts, tensor, *found):
        return refuse(NAME, f"`{ast.unparse(places)}` would be evaluated more than once")
    picks = picks_in(facts, value, found.mask)
    if not one_by_one(facts, value, picks) or speculate(facts, value).blockers:
        return refuse(NAME, f"`{ast.unparse(value)}` is not known to be computed one element at a time")
    if not replaceable(facts, [statement]):
        return refuse(NAME, "the statement shares its line with another one")
    number = number_type(facts, value)
    if number is not None and kind(facts, tensor) not in (number, "float"):
        return refuse(NAME, f"`{ast.unparse(tensor)}` is not known to hold numbers as `{ast.unparse(value)}` is")
    cast = _cast(facts, tensor, None, value) if number is None else (False, [])
    if isinstance(cast, Refusal):
        return cast
    casts, differences = cast[0], list(cast[1])

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        target = f"{code.operand(tensor)}[{code.argument(found.tensor)}]"
        text = code.argument(value, {node: code.operand(pick.tensor) for node, pick in picks.items()})
        if casts:
            text = f"{text if text.isidentifier() else f'({text})'}.to({code.operand(tensor)}.dtype)"
        where = f"{imports.name('torch.where')}({code.argument(found.mask)}, {text}, {target})"
        return [*imports.edits(), replace_statements(facts.source, [statement], f"{target} = {where}\n")]

    differences += other_shape(facts, found)
    if None in ranks:
        says = f"`{ast.unparse(tensor)}` and the places are taken to have one dimension, and may broadcast or raise"
        differences.append(Difference("shape", says))
    for inner in picks.values():
        differences += unlike(facts, inner.tensor, found.tensor)
    differences += gradient_differences(facts, statement, [[value]])
    return offer(NAME, "store at all places, under the mask with torch.where", facts, make, differences)


_SIGNS: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
_OVERLAP = Difference("exception", "for expanded memory it raises, where a store by a mask only warns")
_DTYPES = Difference("exception", "what is stored is cast to the dtype that it is stored in, where a mask may raise")


def _cast(
    facts: FunctionFacts, tensor: ast.expr, operator: ast.operator | None, value: ast.expr
) -> tuple[bool, list[Difference]] | Refusal:
    """Must what is stored be cast, so that elements outside the mask stay what they are, and what differs then?"""
    into, of = kind(facts, tensor), number_type(facts, value) or kind(facts, value)
    if operator is None:
        if same_dtype(facts, tensor, value):
            return False, []
        if into is not None and of is not None and (into != of or _other_dtype(facts, tensor, value)):
            return refuse(NAME, f"`{ast.unparse(value)}` has another dtype than it is stored in, which raises")
        return True, [_DTYPES]
    result = "float" if isinstance(operator, ast.Div) and of in ("bool", "uint8", "int") else of
    if into is None or result is None:
        return True, [_DTYPES]
    order = ("bool", "uint8", "int", "float", "complex")
    if order.index(result) > order.index(into) and (into, result) != ("uint8", "int"):
        return refuse(NAME, f"`{ast.unparse(value)}` cannot be stored in whole numbers in place")
    if into == "bool" and isinstance(operator, ast.Sub):
        return refuse(NAME, "a subtraction of bools raises")
    return number_type(facts, value) is None and not same_dtype(facts, tensor, value), []


@answers("dtypes")
def _other_dtype(facts: FunctionFacts, one: ast.expr, other: ast.expr) -> bool:
    """Are the dtypes of two tensors known, and not the same?"""
    dtypes = {v.dtype for v in (facts.value(one), facts.value(other)) if isinstance(v, Tensor)}
    return len(dtypes) == 2 and all(isinstance(d, str) and d[-1:].isdigit() for d in dtypes)


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
        return [replace_statements(facts.source, [statement], f"{code.operand(tensor)}[{test}] = {code.text(value)}\n")]

    differences = [Difference("state", "the loop's variable is not bound any more")]
    differences += other_shape(facts, Picked(tensor, mask))
    if not dense(facts, statement, tensor):
        differences.append(Difference("output", "a store by a mask warns for expanded memory"))
    return offer(NAME, "store under the mask", facts, make, differences)
