"""Pick or store by positions instead of by a slice whose bounds are tensors.

Before:
    y[n:] = 0

After:
    y[torch.arange(y.shape[0], device=y.device) >= n] = 0

Legal when:
    one slice of a tensor has a bound that is a 0-d tensor of whole numbers, and beside it stand whole dimensions, and
    in a store also what is known while tracing. What is read is a part of known length, `x[n : n + 3]`, as each of
    several slices must be, or of the first dimension, behind numbers too, or reduced along its dimension or as a whole,
    together with the same slice of other tensors: there a mask serves (and is mended next). Two parts that are joined
    the other way round, `torch.cat([x[n:], x[:n]])`, are one pick. What is stored is one
    number, a part of known length, or what is computed, element by element, from the same slice of other tensors, or
    the same places of another one, `out[b, :n] = x[b, :n]`.

Differs in:
    a part is a copy, of other strides. One of known length raises where it would reach over the end, or begins below
    zero; a bound that is no whole number raises no more, nor does a store into expanded
    memory.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import always_evaluated
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.liveness import fresh
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.qualified_names import constant, is_tensor, number_type, qualified
from graphmend.transforms.code.text_edits import insert_before, replace_expression, replace_statements
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.legality.gradients.sides import gradient_differences
from graphmend.transforms.legality.in_place import dense
from graphmend.transforms.legality.memory import known_to_share, written_to
from graphmend.transforms.legality.rows.copies import OF_ALL, outdated, worked_into
from graphmend.transforms.legality.rows.masked_elements import one_by_one, other_size, same_dtype, same_shape
from graphmend.transforms.legality.rows.slices import (
    Sliced,
    is_known,
    is_whole_number,
    sliced,
    width_of,
)
from graphmend.transforms.legality.speculation import repeatable, speculate
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.inside_slice import inside_slice
from graphmend.transforms.rewrites.shapes.forms.rotation import rotated
from graphmend.transforms.rewrites.shapes.forms.windows import BELOW, END, FLOAT, copied, each_window, window, windows

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "tensor_slice"
#: positions of more characters than this get a name
_SHORT_TEXT = 50
_ALL = Difference("evaluation", "all elements are computed, those outside of the slice in vain")
_SIZES = "what is sliced has different sizes there"


@asks("effects", "totality", "memory", "domain", "dtypes", "shapes", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    if (parts := windows(facts)) is not None:
        return each_window(facts, parts)
    if (turned := rotated(facts)) is not None:
        return turned
    found = _found(facts)
    if found is None:
        return None
    found = _stored_part(facts, found) or found
    node, part = found.node, found.part
    bounds = [b for b in (part.lower, part.upper) if b is not None]
    if part.step is not None or not repeatable(facts, node.value, *bounds):
        return refuse(NAME, "the slice has a step, or more than computes its bounds")
    differences = [FLOAT] if any(not is_whole_number(facts, b) for b in bounds) else []
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
    if found.whole and (width := width_of(facts, part)) is not None:
        return _offer(facts, found, width, [*differences, END, BELOW, *copied(facts, found)])
    if found.dim != 0 or not found.whole:
        if (reduced := _reduced_along(facts, found)) is None:
            return refuse(NAME, "how much the slice takes is not known, and it is not the first dimension")
        return _later(facts, found, reduced, differences)
    also, sizes = _stored_there(facts, found)
    return _offer(facts, found, None, [*differences, *sizes, *copied(facts, found)], also)


def _stored_there(facts: FunctionFacts, found: Sliced) -> tuple[Sliced | None, list[Difference]]:
    """What `y[order[:k]] = values[:k]` stores at places that the same slice picks: one mask serves both."""
    match facts.statement:
        case ast.Assign(targets=[ast.Subscript(slice=places)], value=ast.Subscript() as value) if places is found.node:
            other = _like(facts, value, found)
            sizes = other_size(facts, found.node.value, value.value, found.dim) if other is not None else None
            return (other, sizes) if sizes is not None and repeatable(facts, value.value) else (None, [])
    return None, []


def _behind_numbers(facts: FunctionFacts, found: Sliced) -> str | None:
    """The text of the tensor whose first dimension is sliced, where numbers alone stand in front of the slice."""
    index = found.node.slice
    indices = index.elts if isinstance(index, ast.Tuple) else [index]
    front, behind = indices[: found.dim], indices[found.dim + 1 :]
    if found.dim < 0 or behind or not front or any(isinstance(i, (ast.Slice, ast.Starred)) for i in front):
        return None
    if not all(is_known(facts, i) and constant(i) is not ... for i in front):
        return None
    code = Code(facts.source)
    return f"{code.operand(found.node.value)}[{', '.join(code.argument(i) for i in front)}]"


class _Reduced(NamedTuple):
    """A reduction of what is computed, element by element, from the same slice of tensors, along `dim` or of all."""

    body: ast.expr
    leaves: list[Sliced]
    dim: ast.expr | None


def _reduced_along(facts: FunctionFacts, found: Sliced) -> _Reduced | None:
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
    leaves = [s for n in nodes_in(node) if isinstance(n, ast.Subscript) and (s := _like(facts, n, found)) is not None]
    if not one_by_one(facts, node, {s.node for s in leaves}) or speculate(facts, node).blockers:
        return None
    return _Reduced(node, leaves, given[0] if given else None)


def _like(facts: FunctionFacts, node: ast.Subscript, found: Sliced) -> Sliced | None:
    """The same slice of another tensor, in the same dimension."""
    other = sliced(facts, node) if is_tensor(facts, node.value) else None
    same = (
        other is not None
        and other.kept
        and other.dim == found.dim
        and ast.unparse(other.part) == ast.unparse(found.part)
    )
    return other if same else None


def _later(facts: FunctionFacts, found: Sliced, reduced: _Reduced, differences: list[Difference]) -> Fix | Refusal:
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


def _behind(facts: FunctionFacts, found: Sliced, tensor: str, differences: list[Difference]) -> Fix:
    """The part as rows of `tensor` that a mask picks, or as those at known distances from its begin."""
    width = width_of(facts, found.part)

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        if width is not None:
            places = window(facts, imports, found, width)
            return [*imports.edits(), replace_expression(facts.source, found.node, f"{tensor}[{places}]")]
        mask, named = _named(facts, _mask(facts, imports, found, line=True))
        return [*imports.edits(), *named, replace_expression(facts.source, found.node, f"{tensor}[{mask}]")]

    ends = [] if width is None else [END, BELOW]
    every = [*differences, *ends, *copied(facts, found)]
    return offer(NAME, "pick by positions instead of by a slice", facts, make, every)


def _stored(facts: FunctionFacts, found: Sliced, differences: list[Difference]) -> Fix | Refusal:
    statement = facts.statement
    if not dense(facts, statement, found.node.value):
        differences.append(Difference("exception", "for expanded memory it warns, where a store by a slice raises"))
    match statement:
        case ast.Assign(targets=[target], value=value) if target is found.node:
            pass
        case _:
            return refuse(NAME, "the part is given a value together with other targets, or computed with in place")
    if (width := width_of(facts, found.part)) is not None:
        if not found.whole:
            return refuse(NAME, "other indices stand beside the slice")
        tensor = isinstance(facts.value(value), Tensor)
        if not tensor and number_type(facts, value) is None:
            differences.append(Difference("exception", f"`{ast.unparse(value)}` of another dtype raises"))
        return _offer(facts, found, width, [*differences, END, BELOW], filled=value if tensor else None)
    if number_type(facts, value) is not None:
        return _offer(facts, found, None, differences)
    if isinstance(filled := facts.value(value), Tensor) and filled.rank == 0 and not filled.ndarray:
        return _offer(facts, found, None, differences, filled=value)
    same = isinstance(value, ast.Subscript) and ast.unparse(value.slice) == ast.unparse(found.node.slice)
    beside = found.whole or found.dim >= 0
    if not (same and isinstance(value, ast.Subscript) and is_tensor(facts, value.value) and beside):
        leaves = _parts_alike(facts, found, value) if found.whole else []
        if not leaves:
            says = f"`{ast.unparse(value)}` is neither a number nor computed from the same part of other tensors"
            return refuse(NAME, says)
        return _selected(facts, found, value, leaves, [*differences, _ALL])
    if found.dim != 0 or not found.whole:
        return _selected(facts, found, value, [sliced(facts, value) or found], differences)
    other = Sliced(value, value.slice, 0, True) if isinstance(value.slice, ast.Slice) else None
    if other is None or not repeatable(facts, value.value):
        return refuse(NAME, f"`{ast.unparse(value)}` is not known to be a plain part")
    if (sizes := other_size(facts, found.node.value, value.value, found.dim)) is None:
        return refuse(NAME, _SIZES)
    differences = [*differences, *sizes]
    return _offer(facts, found, None, differences, also=other)


def _parts_alike(facts: FunctionFacts, found: Sliced, value: ast.expr) -> list[Sliced]:
    """The slices of other tensors from which a value is computed element by element; none where it is otherwise."""
    nodes = (n for n in nodes_in(value) if isinstance(n, ast.Subscript))
    leaves = [leaf for n in nodes if (leaf := _like(facts, n, found)) is not None and leaf.whole]
    if not one_by_one(facts, value, {leaf.node for leaf in leaves}) or speculate(facts, value).blockers:
        return []
    return leaves


def _selected(
    facts: FunctionFacts, found: Sliced, value: ast.expr, leaves: list[Sliced], differences: list[Difference]
) -> Fix | Refusal:
    """`y[:, :n] = x[:, :n]` of tensors of one shape, or of the same places in them, as a selection between them."""
    for leaf in leaves:
        if not same_shape(facts, found.node.value, leaf.node.value) or not repeatable(facts, leaf.node.value):
            return refuse(NAME, "the tensors are not known to have one shape")
    if not repeatable(facts, *(i for one in (found, *leaves) for i in _beside(one))):
        return refuse(NAME, "what stands beside the slice would be evaluated more than once")
    if not replaceable(facts, [facts.statement]):
        return refuse(NAME, "the statement shares its line with another one")

    def make() -> list[TextEdit]:
        imports, code = Imports(facts), Code(facts.source)
        whole: dict[ast.expr, str] = {leaf.node: _around(facts, leaf) for leaf in leaves}
        texts = (_around(facts, found), whole.get(value) or f"({code.argument(value, whole)})")
        numbers = [i for i in _in_front(found) if not isinstance(i, ast.Slice)]  # which leave no dimension
        target, other = (f"{text}.movedim({found.dim - len(numbers)}, -1)" for text in texts)
        name = fresh(facts, "inside")
        text = f"{name} = {_mask(facts, imports, found)}\n"
        text += f"{target}.copy_({imports.name('torch.where')}({name}, {other}, {target}))\n"
        return [*imports.edits(), replace_statements(facts.source, [facts.statement], text)]

    if value not in [leaf.node for leaf in leaves]:
        differences = [*differences, *gradient_differences(facts, facts.statement, [[value]])]
    if not all(same_dtype(facts, found.node.value, n) for n in (value, *(leaf.node.value for leaf in leaves))):
        says = "where the dtypes differ, the tensor may go through the other one"
        differences = [*differences, Difference("rounding", says)]
    differences = [*differences, Difference("exception", "tensors of different devices raise")]
    return offer(NAME, "select by positions instead of by a slice", facts, make, differences)


def _in_front(found: Sliced) -> list[ast.expr]:
    index = found.node.slice
    return index.elts[: max(found.dim, 0)] if isinstance(index, ast.Tuple) else []


def _beside(found: Sliced) -> list[ast.expr]:
    index = found.node.slice
    return [one for one in index.elts if one is not found.part] if isinstance(index, ast.Tuple) else []


def _around(facts: FunctionFacts, found: Sliced) -> str:
    """The text of a tensor, or of the places in it that stand beside the slice."""
    code = Code(facts.source)
    return code.operand(found.node.value) if found.whole else code.text(found.node, {found.part: ":"})


def _offer(
    facts: FunctionFacts,
    found: Sliced,
    width: ast.expr | None,
    differences: list[Difference],
    also: Sliced | None = None,
    filled: ast.expr | None = None,
) -> Fix:
    """`also` is a part that is read at the same positions, `filled` a 0-d tensor that is stored at each of them."""

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        positions = window(facts, imports, found, width) if width is not None else _mask(facts, imports, found)
        positions, named = _named(facts, positions)
        parts = [found.part, *([also.part] if also is not None else [])]
        edits = [*named, *(replace_expression(facts.source, part, positions) for part in parts)]
        if filled is not None:
            # a store by a slice casts, and copies first; one by positions raises for another dtype, or for memory that
            # is the tensor's own (torch 2.13)
            code, text = Code(facts.source), Code(facts.source).operand(filled)
            text += (
                "" if same_dtype(facts, found.node.value, filled) else f".to({code.operand(found.node.value)}.dtype)"
            )
            text += ".clone()" if known_to_share(facts, found.node.value, filled) else ""
            edits += [replace_expression(facts.source, filled, text)] if text != code.operand(filled) else []
        return [*imports.edits(), *edits]

    return offer(NAME, "pick by positions instead of by a slice", facts, make, differences)


def _named(facts: FunctionFacts, positions: str) -> tuple[str, list[TextEdit]]:
    """A name for positions, on a line of its own where there is one in front of a plain statement."""
    statement = facts.statement
    value = statement.value if isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)) else None
    if value is None or len(positions) <= _SHORT_TEXT or not begins_line(facts.source, statement):
        return positions, []
    # something in the statement may change what the positions depend on, but for a call around them, which comes last
    first = [*value.args, *(k.value for k in value.keywords)] if isinstance(value, ast.Call) else [value]
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
        first.append(value.func.value)
    first += (
        [n for n in nodes_in(statement.target) if isinstance(n, ast.expr)]
        if isinstance(statement, ast.AugAssign)
        else []
    )
    if not always_evaluated(facts, facts.node) or not repeatable(facts, *first):
        return positions, []
    name = fresh(facts, "inside")
    return name, [insert_before(facts.source, statement, f"{name} = {positions}\n")]


def _mask(facts: FunctionFacts, imports: Imports, found: Sliced, *, line: bool = False) -> str:
    """Which positions of the dimension lie inside the slice; where it must be known to be a `line`, as one."""
    tensor = Code(facts.source).operand(found.node.value)
    return inside_slice(facts, imports, found.part, tensor, f"{tensor}.shape[{found.dim}]", line=line)


def _stored_part(facts: FunctionFacts, found: Sliced) -> Sliced | None:
    """The place of `y[i, :n] = x[i, :n]`, where the finding is about what is read."""
    match facts.statement:
        case ast.Assign(targets=[ast.Subscript() as target], value=value) if value is found.node:
            return _like(facts, target, found) if found.kept else _same_part(facts, target, found)
    return None


def _same_part(facts: FunctionFacts, node: ast.Subscript, found: Sliced) -> Sliced | None:
    same = is_tensor(facts, node.value) and ast.unparse(node.slice) == ast.unparse(found.node.slice)
    return sliced(facts, node) if same else None


def _found(facts: FunctionFacts) -> Sliced | None:
    """The subscript around the finding that has one slice by tensors."""
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, ast.stmt):
            break
        if isinstance(node, ast.Subscript) and is_tensor(facts, node.value):
            return sliced(facts, node)
    return None
