"""Index with a tensor of one element instead of a Python number or a 0-d tensor.

Before:
    best = x[x.argmax()]

After:
    best = x[x.argmax().reshape(1)].squeeze(0)

Legal when:
    a tensor is indexed by computed whole numbers, with nothing but slices and numbers beside them; or a list of
    tensors, or a table of numbers, is by one. What is read is not written to. A bool is no such index: it adds a
    dimension.

Differs in:
    an index out of range raises later on a GPU, unless it is the place of an extremum in the tensor itself; an index
    whose dtype is not known may be a bool or a float. Reading gives a copy instead of a view, where that can be
    seen. A list of tensors is stacked, which needs equal shapes and dtypes. Storing casts to the tensor's dtype, and
    warns for expanded memory.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Container, Scalar, Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import display_of
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.imports import Imports
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, number_type, qualified
from graphmend.transforms.code.text_edits import replace_expression
from graphmend.transforms.fix import Difference, Fix, Refusal, TextEdit
from graphmend.transforms.if_conversion.kept_scalars import conversion, taken, written
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.gradients.sides import lost, recorded
from graphmend.transforms.legality.in_place import dense
from graphmend.transforms.legality.memory import may_share, written_to
from graphmend.transforms.legality.numbers.counterparts import Counterpart
from graphmend.transforms.legality.operations import aliases
from graphmend.transforms.legality.rows.masked_elements import same_dtype
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.legality.speculation import repeatable
from graphmend.transforms.questions import answers
from graphmend.transforms.rewrites.answers import asks, offer, refuse
from graphmend.transforms.rewrites.scalars.forms.picked_module import (
    blocker,
    is_module_list,
    leaked,
    module_called,
    picked_module,
)

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.finding import Finding

NAME = "computed_index"
_LATE = Difference("exception", "an index out of range raises later on a GPU")


_COPY = Difference("aliasing", "the result is a copy instead of a view")
_LOST = "the result has no gradient history"
_LAYOUT = Difference("strides", "the result may have other strides")
_NO_INDEX = (
    Difference("shape", "a bool, which adds a dimension, raises, or picks all where there is one element"),
    Difference("exception", "an index of another dtype than int32 and int64 raises, whole numbers too"),
)
_CUT = Difference("exception", "a float, which is no index, is cut to a whole number")


class _Index(NamedTuple):
    text: str
    """A tensor of shape (1,)."""
    differences: tuple[Difference, ...] = ()


@asks("effects", "totality", "memory", "dtypes", "numbers", "gradients", "names")
def rewrite(finding: Finding, facts: FunctionFacts) -> Fix | Refusal | None:
    subscript = _subscript(facts)
    if subscript is None:
        return None
    indices = subscript.slice.elts if isinstance(subscript.slice, ast.Tuple) else [subscript.slice]
    found = {i: index for i in indices if (index := _index(facts, i)) is not None}
    if not found or not (facts.node is subscript or any(_within(facts.node, i) for i in found)):
        return None
    if isinstance(subscript.ctx, ast.Del):
        return refuse(NAME, "an element is deleted by a computed index")
    for computed in found:
        if _is_bool(facts, computed):
            return refuse(NAME, f"`{ast.unparse(computed)}` is a bool, which adds a dimension")
    if not is_tensor(facts, subscript.value):
        return _sequence(facts, subscript, next(iter(found.values()))) if len(found) == 1 else None
    numbers = [i for i in indices if i not in found and number_type(facts, i) == "int"]
    if any(not isinstance(i, ast.Slice) and i not in numbers for i in indices if i not in found):
        return refuse(NAME, "other indices stand beside the computed one")
    if isinstance(subscript.ctx, ast.Store):
        return _stored(facts, subscript, found, _dimension([i in found for i in indices if i not in numbers]))
    if written_to(facts, subscript):
        return refuse(NAME, f"`{ast.unparse(subscript)}` is written to, which a copy does not pass on")
    if _is_overwritten(facts, subscript):
        return refuse(NAME, f"`{ast.unparse(subscript)}` changes before it is stored, which a copy does not see")
    dim = _dimension([i in found for i in indices if i not in numbers])  # a number leaves no dimension
    whole = Code(facts.source).text(subscript, {i: index.text for i, index in found.items()})
    differences = [d for index in found.values() for d in index.differences]
    if not _consumed(facts, subscript):
        differences += [_COPY, _LAYOUT, *lost(facts, facts.statement, _LOST, subscript.value)]
    elif not _flat(facts, subscript):
        differences.append(_LAYOUT)
    if not all(_in_range(facts, subscript, computed) for computed in found):
        differences.append(_LATE)
    text = f"{whole}.squeeze({dim})"
    return offer(
        NAME,
        "read through an index tensor",
        facts,
        lambda: [replace_expression(facts.source, subscript, text)],
        differences,
    )


def _is_overwritten(facts: FunctionFacts, subscript: ast.Subscript) -> bool:
    """Is it one of several views that are stored one after the other, as in `x[i], x[j] = x[j], x[i]`?"""
    match facts.statement:
        case ast.Assign(targets=targets, value=ast.Tuple(elts=values)) if subscript in values:
            stored = [n for t in targets for n in nodes_in(t) if isinstance(n, ast.Subscript)]
            return any(may_share(facts, n.value, subscript.value) for n in stored)
    return False


def _dimension(computed: list[bool]) -> int:
    """Which dimension of the result index tensors of one element make: the first one's, if they stand together."""
    first, last = computed.index(True), len(computed) - 1 - computed[::-1].index(True)
    return first if all(computed[first : last + 1]) else 0


def _stored(
    facts: FunctionFacts, subscript: ast.Subscript, found: Mapping[ast.expr, _Index], dim: int
) -> Fix | Refusal:
    """`x[n.item()] = v`, and `+=`. The place has one dimension more, `dim`."""
    statement, code = facts.statement, Code(facts.source)
    edits = [replace_expression(facts.source, computed, index.text) for computed, index in found.items()]
    differences = [*(d for index in found.values() for d in index.differences), _LATE]
    if not dense(facts, statement, subscript.value):
        differences.append(Difference("output", "a store through an index tensor warns for expanded memory"))
    match statement:
        case ast.Assign(targets=[target], value=value) if target is subscript:
            if is_tensor(facts, value):
                text = code.operand(value)
                if not same_dtype(facts, subscript.value, value):
                    text += f".to({code.operand(subscript.value)}.dtype)"
                if dim and (rank := getattr(facts.value(value), "rank", None)) != 0:
                    if not all(repeatable(facts, n) for n in nodes_in(subscript.slice) if isinstance(n, ast.Call)):
                        return refuse(NAME, f"`{ast.unparse(subscript.slice)}` would be evaluated more than once")
                    if rank is None:
                        differences.append(Difference("exception", "a value of more dimensions than its place raises"))
                    place = code.text(subscript, dict.fromkeys(found, "0"))
                    text += f".expand({place}.shape).unsqueeze({dim})"
                if text != code.operand(value):
                    edits.append(replace_expression(facts.source, value, text))
            elif number_type(facts, value) is None:
                if dim:
                    return refuse(NAME, f"`{ast.unparse(value)}` is not known to be a tensor or a number")
                differences.append(Difference("exception", "a tensor of another dtype raises"))
        case ast.AugAssign(target=target, value=value) if target is subscript:
            if dim and number_type(facts, value) is None and getattr(facts.value(value), "rank", None) != 0:
                return refuse(NAME, f"`{ast.unparse(value)}` is not known to have no dimensions")
        case _:
            return refuse(NAME, "an element is given a value together with other targets")
    if not repeatable(facts, subscript.value):
        return refuse(NAME, f"`{ast.unparse(subscript.value)}` would be evaluated more than once")
    return offer(NAME, "store through an index tensor", facts, lambda: edits, differences)


@answers("memory")
def _consumed(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is what is read only computed with, so that nobody can tell a copy from a view?"""
    parent = facts.parent(node)
    if isinstance(parent, ast.Attribute) and isinstance(call := facts.parent(parent), ast.Call) and call.func is parent:
        parent = call
    if isinstance(parent, (ast.BinOp, ast.Compare)) or (
        isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.USub)
    ):
        return is_tensor(facts, parent)
    if isinstance(parent, ast.Call):
        last = (qualified(facts, parent.func) or "").rpartition(".")[2]
        return last in aliases.NEW and not effects(facts, parent)
    return False


def _flat(facts: FunctionFacts, node: ast.Subscript) -> bool:
    """Has what is read one dimension at most, so that strides of what is computed with it are the same?"""
    value = facts.value(node.value)
    return isinstance(value, Tensor) and value.rank is not None and value.rank <= 2


@answers("totality")
def _in_range(facts: FunctionFacts, node: ast.Subscript, computed: ast.expr) -> bool:
    """Is an index the place of an extremum in the very tensor that it indexes?"""
    found = conversion(facts, computed)
    place = found[1] if found is not None else computed
    value = facts.value(node.value)
    if not (isinstance(value, Tensor) and value.rank == 1 and node.slice is computed):
        return False
    match place:
        case ast.Call(func=ast.Attribute(value=of, attr="argmax" | "argmin"), args=[], keywords=[]):
            return ast.unparse(of) == ast.unparse(node.value) and repeatable(facts, of)
        case ast.Call(args=[of], keywords=[]) if called(facts, place, "torch.argmax", "torch.argmin"):
            return ast.unparse(of) == ast.unparse(node.value) and repeatable(facts, of)
    return False


@answers("dtypes")
def _is_bool(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an index a bool for certain?"""
    found = conversion(facts, node)
    value = facts.value(found[1] if found is not None else node)
    if found is not None and found[0] != "item":
        return found[0] == "bool"
    return isinstance(value, Tensor) and value.dtype == "bool"


def _subscript(facts: FunctionFacts) -> ast.Subscript | None:
    for node in (facts.node, *facts.ancestors(facts.node)):
        if isinstance(node, ast.stmt):
            return None
        if isinstance(node, ast.Subscript) and (node is facts.node or facts.node in [*nodes_in(node.slice)]):
            return node
    return None


def _index(facts: FunctionFacts, node: ast.expr) -> _Index | None:
    """A computed whole number as a tensor of shape (1,)."""
    if conversion(facts, node) is not None:
        found = taken(facts, node, detach=False)
        return None if found is None else _one(found.text.removesuffix(".reshape(())"), found.dtype, found.differences)
    value = facts.value(node)
    if isinstance(node, (ast.BinOp, ast.UnaryOp)) and isinstance(value, Scalar):
        return _arithmetic(facts, node)
    if isinstance(value, Tensor) and not value.ndarray and (value.rank == 0 or not _shaped(facts, node)):
        return _one(Code(facts.source).operand(node), value.dtype, ())
    return None


def _one(text: str, dtype: Hashable, differences: tuple[Difference, ...]) -> _Index:
    """Only int32 and int64 are positions: a tensor of uint8 is a mask, and others are no index. A cast of what may be
    a bool, or a float, would answer where Python raises, or with other elements."""
    whole = dtype_kind(dtype) == "int"
    cast = ".long()" if whole and dtype not in ("int32", "int64") else ""
    return _Index(f"{text}{cast}.reshape(1)", differences if whole else (*differences, *_NO_INDEX))


def _arithmetic(facts: FunctionFacts, node: ast.expr) -> _Index | None:
    """`-n.item()`, `n.item() + 1`, in whole numbers of 64 bits."""
    replace: dict[ast.expr, str] = {}
    differences: list[Difference] = []
    for inner in nodes_in(node):
        if not isinstance(inner, ast.expr) or any(_within(inner, outer) for outer in replace):
            continue
        found = taken(facts, inner, detach=False)
        if found is not None:
            replace[inner] = found.text if found.dtype == "int64" else f"{found.text}.long()"
            differences += found.differences
            if dtype_kind(found.dtype) not in ("int", "bool"):
                differences.append(_CUT)
        elif conversion(facts, inner) is not None:
            return None
    if not replace or any(isinstance(n, ast.Div) for n in nodes_in(node)):
        return None
    if any(isinstance(n, (ast.FloorDiv, ast.Mod)) for n in nodes_in(node)):
        differences.append(Difference("exception", "a division by zero raises another exception"))
    return _Index(f"({Code(facts.source).text(node, replace)}).reshape(1)", tuple(differences))


def _within(node: ast.AST, outer: ast.expr) -> bool:
    return any(n is node for n in nodes_in(outer))


def _shaped(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an index an array of indices, as far as is known, and what it indexes a tensor? Dynamo captures that."""
    parent = facts.parent(node)
    above = facts.parent(parent) if isinstance(parent, ast.Tuple) else parent
    return isinstance(above, ast.Subscript) and is_tensor(facts, above.value)


def _sequence(facts: FunctionFacts, node: ast.Subscript, index: _Index) -> Fix | Refusal | None:
    """An element of a list of tensors, of a shape, or of a table of numbers."""
    if isinstance(node.ctx, ast.Store):
        return refuse(NAME, f"`{ast.unparse(node.value)}` is not known to be a tensor")
    code, value = Code(facts.source), facts.value(node.value)
    text = code.argument(node.value)
    if is_module_list(value) and (called_once := module_called(facts, node)) is not None:
        if (why := blocker(facts, node, called_once)) is not None:
            return refuse(NAME, why)
        kept = [*(d for d in index.differences if d.kind != "shape"), _LATE]
        return picked_module(facts, node, called_once, index.text, kept)
    differences = [d for d in index.differences if d.kind != "shape"]
    table: tuple[str, type] | None = None
    forms: Mapping[ast.expr, Counterpart] = {}
    if isinstance(value, Container) and value.kind in ("list", "tuple") and isinstance(value.element, Tensor):
        if written_to(facts, node):
            return refuse(NAME, f"`{ast.unparse(node)}` is written to, which a copy does not pass on")
        differences += [*_stacked(facts, value, text), _LATE]
        function, argument = "torch.stack", text
        if not _consumed(facts, node):
            differences += [_COPY, _LAYOUT, *lost(facts, facts.statement, _LOST)]
    elif table := _table(facts, node.value):
        differences.append(Difference("exception", "an index out of range raises later, or another exception"))
        uses = ScalarUses(facts, "int64" if table[1] is int else "float64", rewrites=True)
        try:
            uses.follow(node)
        except NeedsPythonNumberError as error:
            return refuse(NAME, str(error))
        if uses.also:
            return refuse(NAME, f"`{ast.unparse(uses.also[0])}` stays a Python number")
        differences += uses.differences
        forms = uses.counterparts
        function, argument = "torch.tensor", table[0]
        places = [n.id for n in nodes_in(node.slice) if isinstance(n, ast.Name) and is_tensor(facts, n)]
        if places:
            argument += f", device={places[0]}.device"
        else:
            differences.append(Difference("exception", "on a GPU, the numbers are not where the index is"))
    else:
        return refuse(NAME, f"`{ast.unparse(node.value)}` is neither a tensor nor a list of tensors")
    double = function == "torch.tensor" and table is not None and table[1] is float

    def make() -> list[TextEdit]:
        imports = Imports(facts)
        dtype = f", dtype={imports.name('torch.float64')}" if double else ""
        made = f"{imports.name(function)}({argument}{dtype})[{index.text}].squeeze(0)"
        texts = written(facts, imports, {node: made}, forms)
        return [*imports.edits(), *(replace_expression(facts.source, n, text) for n, text in texts.items())]

    return offer(NAME, "select from a stacked tensor", facts, make, differences)


def _stacked(facts: FunctionFacts, value: Container, text: str) -> list[Difference]:
    """What differs where the tensors of a list are stacked."""
    items = [i for i in value.items or () if isinstance(i, Tensor)]
    shapes, dtypes = {i.shape for i in items}, {i.dtype for i in items}
    whole = value.items is not None and len(items) == len(value.items) and items
    found: list[Difference] = []
    if not whole or len(shapes) > 1 or None in shapes:
        found.append(Difference("exception", f"the tensors of `{text}` must have equal shapes"))
    if not whole or len(dtypes) > 1 or dtypes & {None, "int", "float", "complex"}:
        found.append(Difference("dtype", f"if the dtypes of `{text}` differ, the result has the promoted one"))
    if recorded(facts, facts.statement):
        found.append(
            Difference("zero-gradients", "tensors that are not chosen get zeros for gradients instead of None")
        )
        found.append(leaked("a tensor"))
    return found


def _table(facts: FunctionFacts, node: ast.expr) -> tuple[str, type] | None:
    """The text of a display of numbers that is indexed from 0, or of a shape, and the type of its numbers."""
    table, node = node, display_of(facts, node) or node
    if isinstance(node, ast.Dict):
        if [constant(k) for k in node.keys] != list(range(len(node.keys))):
            return None
        values = node.values
    elif isinstance(node, (ast.List, ast.Tuple)):
        values = node.elts
    elif isinstance(node, ast.Attribute) and node.attr == "shape" and is_tensor(facts, node.value):
        return Code(facts.source).text(node), int
    else:
        return None
    kinds = {type(constant(v)) for v in values}
    if len(kinds) != 1 or not kinds <= {int, float}:
        return None
    code = Code(facts.source)
    if table is not node and not isinstance(node, ast.Dict):
        return code.text(table), kinds.pop()
    return f"[{', '.join(code.argument(v) for v in values)}]", kinds.pop()
