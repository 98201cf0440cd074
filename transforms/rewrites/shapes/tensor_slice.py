"""Pick or store by positions instead of by a slice whose bounds are tensors.

Before:
    y[n:] = 0

After:
    y[torch.arange(y.shape[0], device=y.device) >= n] = 0

Legal when:
    one slice of a tensor has a bound that is a 0-d tensor of whole numbers, and beside it stand whole dimensions, and
    in a store also what is known while tracing. What is read is a part of known length, `x[n : n + 3]`, or of the first
    dimension, behind numbers too, or reduced along its dimension or as a whole, together with the same slice of other
    tensors: there a mask serves (and is mended next). What is stored is one number, a part of known length, or what
    the same slice picks out of another tensor.

Differs in:
    a part is a copy, of other strides. One of known length raises where it would reach over the end, and is taken from
    the end where it begins below zero; a bound that is no whole number raises no more, nor does a store into expanded
    memory.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Static, Tensor
from graphmend.transforms.code.bindings import has_own_names
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.qualified_names import constant, is_tensor, number_type, qualified
from graphmend.transforms.code.text_edits import insert_before, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.gradients import gradient_differences, lost
from graphmend.transforms.legality.in_place import dense
from graphmend.transforms.legality.memory import written_to
from graphmend.transforms.legality.rows.copies import OF_ALL, layout_shows, outdated, seen_as_view, worked_into
from graphmend.transforms.legality.rows.masked_elements import one_by_one, other_size, same_dtype, same_shape
from graphmend.transforms.legality.rows.places import not_negative
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "tensor_slice"
#: positions of more characters than this get a name
_SHORT_TEXT = 50
_END = Difference("exception", "a part that would reach over an end of the tensor raises")
_SHORT = Difference("shape", "a part that begins below zero is taken from the end, where it was empty")
_COPY = Difference("aliasing", "the result is a copy instead of a view")
_LAYOUT = Difference("strides", "the result may have other strides")
_ALL = Difference("evaluation", "all elements are computed, those outside of the slice in vain")
_SIZES = "what is sliced has different sizes there"
_FLOAT = Difference("exception", "a bound that is no whole number raises no more")


class _Sliced(NamedTuple):
    """A subscript with one slice whose bounds are tensors."""

    node: ast.Subscript
    part: ast.Slice
    dim: int
    """The dimension of the tensor that is sliced, below zero where it is counted from the end."""
    whole: bool
    """Do all other indices take whole dimensions?"""
    kept: bool = False
    """Do all other indices take whole dimensions, or add one behind the slice?"""


@asks("effects", "totality", "memory", "domain", "dtypes", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    found = _found(facts)
    if found is None:
        return None
    node, part = found.node, found.part
    bounds = [b for b in (part.lower, part.upper) if b is not None]
    if part.step is not None or not repeatable(facts, node.value, *bounds):
        return refuse(NAME, "the slice has a step, or more than computes its bounds")
    differences = [_FLOAT] if any(not _whole(facts, b) for b in bounds) else []
    if isinstance(node.ctx, ast.Store):
        return _stored(facts, found, differences)
    if isinstance(node.ctx, ast.Del) or written_to(facts, node):
        return refuse(NAME, "what the slice gives is written to")
    if outdated(facts, node):
        return refuse(NAME, f"`{ast.unparse(node.value)}` may change before the part is read, which a copy misses")
    if not found.whole and (chosen := _behind_numbers(facts, found)) is not None:
        return _behind(facts, found, chosen, differences)
    if not found.whole and not found.kept:
        return refuse(NAME, "what the slice gives is taken from some of the other dimensions")
    if found.whole and (width := _width(facts, part)) is not None:
        return _offer(facts, found, width, [*differences, _END, _SHORT, *_copied(facts, found)])
    if found.dim != 0 or not found.whole:
        if (reduced := _reduced_along(facts, found)) is None:
            return refuse(NAME, "how much the slice takes is not known, and it is not the first dimension")
        return _later(facts, found, reduced, differences)
    also, sizes = _stored_there(facts, found)
    return _offer(facts, found, None, [*differences, *sizes, *_copied(facts, found)], also)


def _stored_there(facts: FunctionFacts, found: _Sliced) -> tuple[_Sliced | None, list[Difference]]:
    """What `y[order[:k]] = values[:k]` stores at places that the same slice picks: one mask serves both."""
    match facts.statement:
        case ast.Assign(targets=[ast.Subscript(slice=places)], value=ast.Subscript() as value) if places is found.node:
            other = _like(facts, value, found)
            sizes = other_size(facts, found.node.value, value.value, found.dim) if other is not None else None
            return (other, sizes) if sizes is not None and repeatable(facts, value.value) else (None, [])
    return None, []


def _copied(facts: FunctionFacts, found: _Sliced) -> list[Difference]:
    """What the program may see of a copy in the place of a view."""
    seen = [_LAYOUT] if layout_shows(facts, found.node) else []
    if seen_as_view(facts, found.node):
        seen += [_COPY, *lost(facts, facts.statement, "the result has no gradient history", found.node.value)]
    return seen


def _behind_numbers(facts: FunctionFacts, found: _Sliced) -> str | None:
    """The text of the tensor whose first dimension is sliced, where numbers alone stand in front of the slice."""
    index = found.node.slice
    indices = index.elts if isinstance(index, ast.Tuple) else [index]
    front, behind = indices[: found.dim], indices[found.dim + 1 :]
    if found.dim < 0 or behind or not front or any(isinstance(i, (ast.Slice, ast.Starred)) for i in front):
        return None
    if not all(_is_known(facts, i) and constant(i) is not ... for i in front):
        return None
    code = Code(facts.source)
    return f"{code.operand(found.node.value)}[{', '.join(code.argument(i) for i in front)}]"


class _Reduced(NamedTuple):
    """A reduction of what is computed, element by element, from the same slice of tensors, along `dim` or of all."""

    body: ast.expr
    leaves: list[_Sliced]
    dim: ast.expr | None


def _reduced_along(facts: FunctionFacts, found: _Sliced) -> _Reduced | None:
    """The reduction, along the sliced dimension or of everything, that a part ends in."""
    node, call = worked_into(facts, found.node)
    if call is None:
        return None
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    arguments = call.args[1:] if folder == "torch" else call.args
    given = [*arguments, *(k.value for k in call.keywords if k.arg in ("dim", "axis"))]
    rank = value.rank if isinstance(value := facts.value(node), Tensor) else None
    own = (found.dim,) if rank is None else (found.dim, found.dim + (rank if found.dim < 0 else -rank))
    some = not given and last in OF_ALL
    one = len(given) == 1 and last in ("sum", "mean") and constant(given[0]) in own
    if (
        folder not in ("torch", "torch.Tensor")
        or not (some or one)
        or len(given) != len(arguments) + len(call.keywords)
    ):
        return None
    leaves = [s for n in ast.walk(node) if isinstance(n, ast.Subscript) and (s := _like(facts, n, found)) is not None]
    if not one_by_one(facts, node, {s.node for s in leaves}) or speculate(facts, node).blockers:
        return None
    return _Reduced(node, leaves, given[0] if given else None)


def _like(facts: FunctionFacts, node: ast.Subscript, found: _Sliced) -> _Sliced | None:
    """The same slice of another tensor, in the same dimension."""
    other = _sliced(facts, node) if is_tensor(facts, node.value) else None
    same = (
        other is not None
        and other.kept
        and other.dim == found.dim
        and ast.unparse(other.part) == ast.unparse(found.part)
    )
    return other if same else None


def _later(facts: FunctionFacts, found: _Sliced, reduced: _Reduced, differences: list[Difference]) -> Fix | Refusal:
    """All elements are computed, and the part is taken where they are reduced."""
    ranks = {v.rank if isinstance(v := facts.value(s.node), Tensor) else None for s in reduced.leaves}
    if len(ranks - {None}) > 1:
        return refuse(NAME, "what is sliced has different numbers of dimensions")
    for leaf in reduced.leaves:
        if (sizes := other_size(facts, found.node.value, leaf.node.value, found.dim)) is None:
            return refuse(NAME, _SIZES)
        differences = [*differences, *sizes]
    if len(reduced.leaves) > 1 and None in ranks:
        says = "what is sliced is taken to have as many dimensions each, and may broadcast or raise"
        differences = [*differences, Difference("exception", says)]
    if reduced.body is not found.node:
        differences = [*differences, _ALL, *gradient_differences(facts, facts.statement, [[reduced.body]])]

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        texts: dict[ast.expr, str] = {s.node: code.operand(s.node.value) for s in reduced.leaves}
        for leaf in (s for s in reduced.leaves if not s.whole):
            texts[leaf.node] += f"[{code.text(leaf.node.slice, {leaf.part: ':'})}]"
        body = texts.get(reduced.body) or f"({code.argument(reduced.body, texts)})"
        mask, edits = _named(facts, _mask(facts, imports, found, line=True))
        edits.append(replace_expression(facts.source, reduced.body, f"{body}.movedim({found.dim}, 0)[{mask}]"))
        edits += [replace_expression(facts.source, reduced.dim, "0")] if reduced.dim is not None else []
        return [*imports.edits(), *edits]

    return offer(NAME, "compute all and pick by positions instead of by a slice", facts, make, differences)


def _behind(facts: FunctionFacts, found: _Sliced, tensor: str, differences: list[Difference]) -> Fix:
    """The part as rows of `tensor` that a mask picks."""

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        mask, named = _named(facts, _mask(facts, imports, found, line=True))
        return [*imports.edits(), *named, replace_expression(facts.source, found.node, f"{tensor}[{mask}]")]

    seen = _copied(facts, found)
    return offer(NAME, "pick by positions instead of by a slice", facts, make, [*differences, *seen])


def _stored(facts: FunctionFacts, found: _Sliced, differences: list[Difference]) -> Fix | Refusal:
    statement = facts.statement
    if not dense(facts, statement, found.node.value):
        differences.append(Difference("exception", "for expanded memory it warns, where a store by a slice raises"))
    match statement:
        case ast.Assign(targets=[target], value=value) if target is found.node:
            pass
        case _:
            return refuse(NAME, "the part is given a value together with other targets, or computed with in place")
    if (width := _width(facts, found.part)) is not None:
        if not found.whole:
            return refuse(NAME, "other indices stand beside the slice")
        return _offer(facts, found, width, [*differences, _END])
    if number_type(facts, value) is not None:
        return _offer(facts, found, None, differences)
    same = isinstance(value, ast.Subscript) and ast.unparse(value.slice) == ast.unparse(found.node.slice)
    if not (same and isinstance(value, ast.Subscript) and is_tensor(facts, value.value) and found.whole):
        return refuse(NAME, f"`{ast.unparse(value)}` is neither a number nor the same part of another tensor")
    if found.dim != 0:
        return _selected(facts, found, value, differences)
    other = _Sliced(value, value.slice, 0, True) if isinstance(value.slice, ast.Slice) else None
    if other is None or not repeatable(facts, value.value):
        return refuse(NAME, f"`{ast.unparse(value)}` is not known to be a plain part")
    if (sizes := other_size(facts, found.node.value, value.value, found.dim)) is None:
        return refuse(NAME, _SIZES)
    differences = [*differences, *sizes]
    return _offer(facts, found, None, differences, also=other)


def _selected(
    facts: FunctionFacts, found: _Sliced, value: ast.Subscript, differences: list[Difference]
) -> Fix | Refusal:
    """`y[:, :n] = x[:, :n]` of two tensors of one shape, as a selection between them."""
    if not same_shape(facts, found.node.value, value.value) or not repeatable(facts, value.value):
        return refuse(NAME, "the two tensors are not known to have one shape")
    if not replaceable(facts, [facts.statement]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        target, other = (f"{code.operand(n)}.movedim({found.dim}, -1)" for n in (found.node.value, value.value))
        name = fresh(facts, "inside")
        text = f"{name} = {_mask(facts, imports, found)}\n"
        text += f"{target}.copy_({imports.name('torch.where')}({name}, {other}, {target}))\n"
        return [*imports.edits(), replace_statements(facts.source, [facts.statement], text)]

    if not same_dtype(facts, found.node.value, value.value):
        says = "where the dtypes differ, the tensor may go through the other one"
        differences = [*differences, Difference("rounding", says)]
    return offer(NAME, "select by positions instead of by a slice", facts, make, differences)


def _offer(
    facts: FunctionFacts,
    found: _Sliced,
    width: ast.expr | None,
    differences: list[Difference],
    also: _Sliced | None = None,
) -> Fix:
    def make() -> list[TextEdit]:
        imports = Imports(facts)
        positions = _window(facts, imports, found, width) if width is not None else _mask(facts, imports, found)
        positions, named = _named(facts, positions)
        parts = [found.part, *([also.part] if also is not None else [])]
        return [*imports.edits(), *named, *(replace_expression(facts.source, part, positions) for part in parts)]

    return offer(NAME, "pick by positions instead of by a slice", facts, make, differences)


def _named(facts: FunctionFacts, positions: str) -> tuple[str, list[TextEdit]]:
    """A name for positions, on a line of its own where there is one in front of a plain statement."""
    statement = facts.statement
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)) else None
    if value is None or len(positions) <= _SHORT_TEXT or not begins_line(facts.source, statement):
        return positions, []
    if has_own_names(facts, facts.node) or not repeatable(
        facts, value
    ):  # something in the statement may change what the positions depend on
        return positions, []
    name = fresh(facts, "inside")
    return name, [insert_before(facts.source, statement, f"{name} = {positions}\n")]


def _window(facts: FunctionFacts, imports: Imports, found: _Sliced, width: ast.expr) -> str:
    code = Code(facts.source)
    assert found.part.lower is not None
    device = code.operand(found.node.value)
    span = f"{imports.name('torch.arange')}({code.argument(width)}, device={device}.device)"
    return f"{code.operand(found.part.lower)} + {span}"


def _mask(facts: FunctionFacts, imports: Imports, found: _Sliced, *, line: bool = False) -> str:
    """Which positions of the dimension lie inside the slice; where it must be known to be a `line`, as one."""
    code = Code(facts.source)
    tensor = code.operand(found.node.value)
    size = f"{tensor}.shape[{found.dim}]"
    positions = f"{imports.name('torch.arange')}({size}, device={tensor}.device)"
    tests = []
    for bound, sign in ((found.part.lower, ">="), (found.part.upper, "<")):
        if bound is None or (constant(bound) == 0 and sign == ">="):
            continue
        text, value = code.operand(bound), facts.value(bound)
        if line and isinstance(value, Tensor) and value.rank is None:
            text += ".reshape(())"
        if not not_negative(facts, bound):
            text = f"{imports.name('torch.where')}({text} < 0, {text} + {size}, {text})"
        tests.append(f"{positions} {sign} {text}")
    return tests[0] if len(tests) == 1 else " & ".join(f"({test})" for test in tests)


def _found(facts: FunctionFacts) -> _Sliced | None:
    """The subscript around the finding that has one slice by tensors."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, ast.stmt):
            break
        if isinstance(node, ast.Subscript) and is_tensor(facts, node.value):
            return _sliced(facts, node)
    return None


def _sliced(facts: FunctionFacts, node: ast.Subscript) -> _Sliced | None:
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    places = [i for i, index in enumerate(indices) if isinstance(index, ast.Slice) and _by_tensor(facts, index)]
    if len(places) != 1:
        return None
    at = places[0]
    others = [index for index in indices if index is not indices[at]]
    whole = all(map(_is_whole, others))
    added = [i for i, o in enumerate(indices) if isinstance(o, ast.Constant) and o.value is None]
    kept = len(added) > 0 and added[0] > at and all(_is_whole(o) or isinstance(o, ast.Constant) for o in others)
    known = all(_is_whole(o) or _is_known(facts, o) for o in others) or kept
    part = indices[at]
    dim = at - len(indices) if any(constant(i) is ... for i in indices[:at]) else at
    if dim < 0 and added:  # the result has it at another place from the end
        return None
    return _Sliced(node, part, dim, whole, whole or kept) if known and isinstance(part, ast.Slice) else None


def _is_whole(index: ast.expr) -> bool:
    return constant(index) is ... or (isinstance(index, ast.Slice) and index.lower is index.upper is index.step is None)


def _by_tensor(facts: FunctionFacts, part: ast.Slice) -> bool:
    """Is a bound of a slice a 0-d tensor, and the other one too, or a whole number that is written out?"""
    bounds = [b for b in (part.lower, part.upper) if b is not None]
    tensors = [b for b in bounds if _zero_d(facts, b)]
    plain = [constant(b) for b in bounds if b not in tensors]
    return bool(tensors) and all(isinstance(p, int) and p >= 0 for p in plain)


def _zero_d(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Tensor) and not value.ndarray and value.rank in (0, None)


def _is_known(facts: FunctionFacts, index: ast.expr) -> bool:
    """Is an index a whole number or a slice that is known while tracing?"""
    if isinstance(index, ast.Slice):
        return all(_is_known(facts, b) for b in (index.lower, index.upper, index.step) if b is not None)
    value = facts.value(index)
    return isinstance(constant(index), int) or (isinstance(value, Static) and value.type == "int")


def _width(facts: FunctionFacts, part: ast.Slice) -> ast.expr | None:
    """`w` of `n : n + w`, where it is known while tracing."""
    if part.lower is None or not isinstance(part.upper, ast.BinOp) or not isinstance(part.upper.op, ast.Add):
        return None
    begin = ast.unparse(part.lower)
    for one, other in ((part.upper.left, part.upper.right), (part.upper.right, part.upper.left)):
        if ast.unparse(one) == begin and isinstance(facts.value(other), Static):
            return other
    return None


def _whole(facts: FunctionFacts, bound: ast.expr) -> bool:
    return constant(bound) is not None or kinds(facts, bound) <= {"int", "uint8"}
