"""Stores and in-place methods of a branch, as the value that the place has afterwards."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol

from graphmend.analysis.lattice.values import NONE, Container, Static, Tensor, dtype_kind, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import is_atom, shortened
from graphmend.transforms.code.liveness import reads, stored
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, constant, is_tensor, number_type
from graphmend.transforms.fix import Difference
from graphmend.transforms.if_conversion.places.guarded import is_guarded
from graphmend.transforms.if_conversion.places.held import held
from graphmend.transforms.if_conversion.places.read_again import may_read
from graphmend.transforms.if_conversion.selection import NotSelectableError, SideValue
from graphmend.transforms.legality.dtypes import kind
from graphmend.transforms.legality.in_place import dense, intact, linear_method, linear_operator
from graphmend.transforms.legality.memory import known_to_share
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.rows.masked_elements import Picked, of_nothing, other_shape
from graphmend.transforms.legality.same_shape import ShapeInference, broadcast
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.if_conversion.tensor_predicates import Predicates

#: `copy`: the tensor itself is changed; `element`: a part of it is stored; `store`: an attribute or a key of a
#: dictionary is bound again; `mask`: elements are stored under a mask
How = Literal["copy", "element", "store", "mask"]


#: stands in the index of a mask for the test of the branch
TAKEN = "__taken__"


class Converting(Protocol):
    """The block that a store or an in-place method stands in, while it is converted."""

    facts: FunctionFacts
    predicates: Predicates
    whole: ast.stmt
    """The statement that is converted."""
    replace: dict[ast.expr, str]
    """Expressions, and the text that they have become."""
    evaluated: list[ast.expr]
    """What the block evaluates."""

    def text(self, node: ast.expr, /) -> str: ...

    def place(self, target: ast.expr, /) -> str: ...

    def operand(self, node: ast.expr, /) -> str: ...


@dataclass(frozen=True)
class Change:
    """A change that outlives the branch."""

    target: str
    """The text of the place."""
    root: str
    """The name that leads there."""
    choice: SideValue
    """The value that it gets."""
    how: How
    mask: str = ""
    """The text of a place under a mask."""
    before: SideValue | None = None
    """The value that the place has before, where it is bound again."""
    differences: tuple[Difference, ...] = ()
    """How the write differs from that of the branch."""

    @property
    def apart(self) -> bool:
        """Is the place a whole attribute or key, which no other place is a part of?"""
        return self.how == "store" or (self.how == "copy" and self.target != self.root)


@answers("order")
def change_of(block: Converting, call: ast.Call) -> Change:
    """`t.method_(...)`, or several in a chain, written as the value that `t` has afterwards."""
    calls = _chain(call)
    receiver = _method(calls[0]).value
    root = _root(receiver)
    in_place = all(_method(c).attr.endswith("_") and not _method(c).attr.endswith("__") for c in calls)
    if not in_place or not is_tensor(block.facts, receiver) or root is None:
        raise NotSelectableError(f"`{shortened(call)}` may have side effects")
    target = block.predicates.code.text(receiver, block.replace)
    block.evaluated.append(receiver)
    text = target
    differences: tuple[Difference, ...] = ()
    for one in calls:
        given = [*one.args, *(k.value for k in one.keywords)] if text != target else []
        read = [n for a in given for n in nodes_in(a) if isinstance(n, (ast.Name, ast.Attribute, ast.Subscript))]
        shared = any(known_to_share(block.facts, n, receiver) for n in read if is_tensor(block.facts, n))
        if shared or any(may_read(block.facts, a, target, root) for a in given):
            raise NotSelectableError(f"`{shortened(one)}` reads what it changes")
        text = _changed(block, one, target, text)
        differences += written_whole(block.facts, block.whole, receiver, _method(one).attr[:-1], one.args)
    return Change(target, root, SideValue(text, call, None), "copy", differences=tuple(dict.fromkeys(differences)))


def _changed(block: Converting, call: ast.Call, target: str, now: str) -> str:
    """The value of a tensor after one method in place; `now` is its value before, and `target` the tensor."""
    imports, plain = block.predicates.imports, _method(call).attr[:-1]
    arguments = [block.text(a) for a in call.args]
    arguments += [f"{k.arg}={block.text(k.value)}" for k in call.keywords if k.arg]
    block.evaluated += [*call.args, *(k.value for k in call.keywords)]
    if plain == "copy" and len(call.args) == 1 and not call.keywords:
        return arguments[0]
    if plain == "zero" and not call.args:
        return f"{imports.name('torch.zeros_like')}({target})"
    if plain == "fill" and len(call.args) == 1 and isinstance(constant(call.args[0]), (int, float)):
        return f"{imports.name('torch.full_like')}({target}, {arguments[0]})"
    if plain in known.ELEMENTWISE | known.ARITHMETIC | {"masked_fill", "lerp", "addcmul", "addcdiv"}:
        safe = not call.keywords and linear_method(block.facts, plain, call.args)
        before = _operand(now) if now != target else intact(block.facts, block.whole, target, linear=safe)
        return f"{before}.{plain}({', '.join(arguments)})"
    raise NotSelectableError(f"`{shortened(call)}` has no form that leaves its tensor alone")


def _chain(call: ast.Call) -> list[ast.Call]:
    """The calls of `t.one_(...).other_(...)`, in their order."""
    calls = [call]
    while isinstance(inner := _method(calls[0]).value, ast.Call) and isinstance(inner.func, ast.Attribute):
        calls.insert(0, inner)
    return calls


def _method(call: ast.Call) -> ast.Attribute:
    assert isinstance(call.func, ast.Attribute)
    return call.func


@answers("order")
def store_of(block: Converting, target: ast.Subscript | ast.Attribute, choice: SideValue) -> Change:
    """`y[0] = v`, `y[mask] = 0`, `d["key"] = v`, `self.name = v`."""
    root = _root(target)
    if root is None:
        raise NotSelectableError(f"`{shortened(target)}` is no place with a name")
    text = block.place(target)
    block.evaluated.append(target.value)
    if isinstance(target, ast.Attribute):
        if is_guarded(block, target):
            raise NotSelectableError(f"code of the class runs where `{text}` is bound")
        return Change(text, root, choice, "store", before=held(block, target))
    if is_entry(block.facts, target):
        return Change(text, root, choice, "store", before=held(block, target))
    owner = block.facts.value(target.value)
    if not (isinstance(owner, Tensor) and not owner.ndarray):
        raise NotSelectableError(f"`{shortened(target)}` is no place of a tensor")
    indices = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if masks := [index for index in indices if _is_mask(block, index)]:
        return _masked(block, target, root, choice, masks)
    if not all(_fixed(block, i) for i in indices):
        raise NotSelectableError(f"`{shortened(target)}` is a computed place")
    block.evaluated.append(target)
    stored, differences = _cast_to_place(block, target, text, choice)
    if not dense(block.facts, block.whole, target.value) and not _one_element(block, target, indices):
        differences += (_overlapping(text),)
    return Change(text, root, stored, "element", before=SideValue(text, target, None), differences=differences)


def _masked(block: Converting, target: ast.Subscript, root: str, choice: SideValue, masks: list[ast.expr]) -> Change:
    """`y[mask] = v`, and `y[:, mask] = v` of one value."""
    facts, code, mask = block.facts, block.predicates.code, masks[0]
    found = of_nothing(facts, Picked(target.value, mask), choice.node)
    if found is None:
        raise NotSelectableError(f"what is stored at `{shortened(target)}` is no number and no tensor of its own")
    if mask is target.slice:
        found += other_shape(facts, Picked(target.value, mask))
    else:
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else []
        value, plain = facts.value(choice.node), [part for part in parts if part is not mask]
        one = number_type(facts, choice.node) is not None or (isinstance(value, Tensor) and value.rank == 0)
        if not one or not all(isinstance(part, ast.Slice) and _fixed(block, part) for part in plain):
            raise NotSelectableError(f"`{shortened(target)}` is a computed place")
        if not _fits(facts, target.value, parts.index(mask), mask):
            says = f"where `{shortened(mask)}` does not fit `{shortened(target.value)}`, it raises on either side"
            found.append(Difference("exception", says))
    block.evaluated.append(target.slice)
    both = {**block.replace, mask: f"{code.operand(mask, block.replace)} & {TAKEN}"}
    place = code.text(target.value)
    warned = Difference("output", f"where `{place}` is expanded memory a store by a mask warns, on either side")
    found += [] if dense(facts, block.whole, target.value) else [warned]
    return Change(place, root, choice, "mask", code.text(target, both), differences=tuple(found))


def _fits(facts: FunctionFacts, tensor: ast.expr, place: int, mask: ast.expr) -> bool:
    """Has a mask in an index, behind slices, the shape of what it picks from?"""
    inference = ShapeInference(facts)
    found = [value.shape if value is not None else None for value in (inference.of(tensor), inference.of(mask))]
    match found:
        case [tuple() as whole, tuple() as part]:
            sized = all(isinstance(n, int) for n in (*whole, *part))
            return sized and whole[place : place + len(part)] == part
    return False


@answers("order")
def augmented(
    block: Converting, target: ast.Attribute | ast.Subscript, value: ast.expr, statement: ast.AugAssign
) -> Change:
    """`place += v`, of whatever a place holds."""
    holds = isinstance(target, ast.Attribute) or is_entry(block.facts, target)
    if holds and not is_tensor(block.facts, target):
        return counted(block, target, value, statement)
    return added(block, target, value, statement)


def is_entry(facts: FunctionFacts, target: ast.expr) -> bool:
    """Is a place an entry of a dict, under a text that is written out? Numbers are one key in several spellings."""
    if not isinstance(target, ast.Subscript) or not isinstance(constant(target.slice), str):
        return False
    owner = facts.value(target.value)
    return isinstance(owner, Container) and owner.kind == "dict"


@answers("order")
def added(
    block: Converting, target: ast.Name | ast.Attribute | ast.Subscript, value: ast.expr, statement: ast.AugAssign
) -> Change:
    """`x += v`, `self.total *= v`, `d["key"] /= v`, `y[0] -= v`, of a tensor: it is changed in place."""
    root = _root(target)
    operation = IN_PLACE.get(type(statement.op))
    if root is None or operation is None or (isinstance(target, ast.Attribute) and is_guarded(block, target)):
        raise NotSelectableError(f"`{shortened(statement)}` does more than compute a value")
    if isinstance(target, ast.Subscript) and is_entry(block.facts, target) and held(block, target) is None:
        raise NotSelectableError(f"`{shortened(target)}` is not known to be there before the branch")
    same = ast.unparse(value) == ast.unparse(target)
    if not same and is_tensor(block.facts, value) and known_to_share(block.facts, value, target):
        raise NotSelectableError(
            f"`{shortened(statement)}` reads what it changes"
        )  # a part of it, perhaps changed by now
    place, right = block.place(target), block.operand(value)
    block.evaluated += [*([] if isinstance(target, ast.Name) else [target.value]), value]
    read = intact(block.facts, block.whole, place, linear=linear_operator(block.facts, statement.op, value))
    whole = ast.copy_location(ast.BinOp(target, statement.op, value), statement.target)
    choice = SideValue(f"{read} {_sign(block, target, statement)} {right}", whole, None)
    differences = written_whole(block.facts, block.whole, target, operation, [value])
    if isinstance(target, ast.Subscript) and not is_entry(block.facts, target):
        change = store_of(block, target, choice)
        return replace(change, differences=tuple(dict.fromkeys([*differences, *change.differences])))
    return Change(place, root, choice, "copy", differences=differences)


def _sign(block: Converting, target: ast.expr, statement: ast.AugAssign) -> str:
    """The operator of `target += v`, as it is written."""
    code = block.predicates.code
    return code.text(statement)[len(code.text(target)) :].strip().partition("=")[0]


@answers("order")
def counted(
    block: Converting, target: ast.Attribute | ast.Subscript, value: ast.expr, statement: ast.AugAssign
) -> Change:
    """`self.count += 1` and `counts["key"] += 1`, of a number."""
    before = held(block, target)
    if before is None or not before.number:
        raise NotSelectableError(f"`{shortened(statement)}` does more than compute a value")
    if number_type(block.facts, value) != before.number or isinstance(statement.op, (ast.Div, ast.Pow)):
        raise NotSelectableError(f"`{shortened(statement)}` may change the type of a number")
    code = block.predicates.code
    place, right = code.text(target, block.replace), block.text(value)
    block.evaluated.append(value)
    text = f"{place} {_sign(block, target, statement)} {_operand(right)}"
    node = ast.BinOp(before.node, statement.op, value)
    return store_of(block, target, SideValue(text, node, None, None, before.number))


def _one_element(block: Converting, target: ast.Subscript, indices: Sequence[ast.expr]) -> bool:
    """Is a place one element of a tensor, which never overlaps itself?"""
    owner = block.facts.value(target.value)
    whole = all(isinstance(constant(i), int) and not isinstance(constant(i), bool) for i in indices)
    return whole and isinstance(owner, Tensor) and owner.rank == len(indices)


def written_whole(
    facts: FunctionFacts, statement: ast.stmt, target: ast.expr, operation: str, operands: Sequence[ast.expr]
) -> tuple[Difference, ...]:
    """How `target.copy_(selected)` differs from `target.operation_(operands)`, and from doing nothing, in place of a
    statement.

    In place, torch 2.13 refuses a result of a higher kind than the target's, and one of another shape; `copy_` casts.
    On memory that is expanded an operation of each element raises, on either side.
    """
    place = ast.unparse(target)
    found = []
    kinds: list[str | None] = [number_type(facts, operand) or kind(facts, operand) for operand in operands]
    into = kind(facts, target)
    if operation in ("div", "divide", "true_divide", "reciprocal", "sqrt", "exp"):
        kinds.append("float")
    if operation not in ("copy", "fill", "zero", "masked_fill"):
        if into is not None and any(k is not None and _ORDER.index(k) > _ORDER.index(into) for k in kinds):
            raise NotSelectableError(f"`{place}` is of a kind that does not hold the result, which raises")
        if into is None or (None in kinds and into != "complex"):
            found.append(
                Difference("exception", f"where the result is of a higher kind than `{place}`, it is cast, and raised")
            )
            found.append(Difference("rounding", f"where the dtypes differ, `{place}` may go through the other one"))
    elif operation == "copy" and into != "complex" and (None in kinds or into is None):
        found.append(Difference("rounding", f"where the dtypes differ, `{place}` may go through the other one"))
    inference = ShapeInference(facts)
    whole = inference.of(target)
    for operand in operands:
        value = facts.value(operand)
        if (
            isinstance(value, Static)
            or constant(operand) is not None
            or (isinstance(value, Tensor) and value.rank == 0)
        ):
            continue
        part = inference.of(operand)
        if whole is None or part is None or whole.shape is None or broadcast(whole.shape, part.shape) != whole.shape:
            found.append(Difference("exception", f"`{ast.unparse(operand)}` that does not fit `{place}` always raises"))
            break
    if not dense(facts, statement, target):
        found.append(_overlapping(place))
    return tuple(found)


def _overlapping(place: str) -> Difference:
    return Difference("exception", f"`{place}` that is expanded memory raises, on either side")


#: the method that changes a tensor in place as an augmented assignment does
IN_PLACE: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
}  # fmt: skip
_ORDER = ("bool", "uint8", "int", "float", "complex")


def _cast_to_place(
    block: Converting, target: ast.Subscript, text: str, choice: SideValue
) -> tuple[SideValue, tuple[Difference, ...]]:
    """A value with the dtype of the place it is stored to: `where` would give both their common one, in which elements
    that are not stored may round."""
    value = block.facts.value(choice.node)
    kinds = [one.type if isinstance(one, Static) else None for one in options(value) if one is not NONE]
    if number_type(block.facts, choice.node) is not None or (kinds and all(of in NUMBER_TYPES for of in kinds)):
        full = block.predicates.imports.name("torch.full_like")
        never = Difference("exception", f"`{choice.text}` always raises where it is None")
        return replace(choice, text=f"{full}({text}, {choice.text})"), (never,) if NONE in options(value) else ()
    proven = isinstance(value, Tensor) or (choice.meta is not None and choice.meta.proven)
    if not proven and not isinstance(choice.node, ast.BinOp):
        raise NotSelectableError(f"`{choice.text}` is not known to be a tensor")
    dtype = f"{block.predicates.code.text(target.value)}.dtype"
    cast = replace(choice, text=f"{_operand(choice.text)}.to({dtype})")
    if isinstance(value, Tensor) and value.rank == 0:
        return cast, ()
    return cast, (Difference("exception", f"`{choice.text}` that does not fit `{text}` always raises"),)


def _operand(text: str) -> str:
    return text if is_atom(text) or text.isdecimal() else f"({text})"


def _is_mask(block: Converting, node: ast.expr) -> bool:
    value = block.facts.value(node)
    return isinstance(value, Tensor) and value.dtype == "bool"


def _fixed(block: Converting, index: ast.expr) -> bool:
    """A whole number or a slice that is known while tracing, or numbers in a tensor that the branch leaves alone: a
    place that occurs twice is given its own value twice where the branch is not taken."""
    if isinstance(index, ast.Slice):
        return all(_fixed(block, part) for part in (index.lower, index.upper, index.step) if part is not None)
    if index is None or isinstance(index, ast.Constant) or isinstance(constant(index), int):
        return True
    value = block.facts.value(index)
    if isinstance(value, Tensor) and not value.ndarray and dtype_kind(value.dtype) in ("int", None):
        return value.dtype != "uint8" and not reads(index) & stored([block.whole])
    return isinstance(value, Static) and value.type in ("int", "slice")


def _root(node: ast.expr) -> str | None:
    """The name that a path of attributes and subscripts begins with."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
