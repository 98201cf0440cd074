"""Two values of one name, and the selection between them: when `torch.where` gives what the branch would have bound,
and what it does to gradients.
"""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Const, Static, Tensor, Value, dtype_kind, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of, surely_bound
from graphmend.transforms.code.qualified_names import NUMBER_TYPES, constant, is_tensor
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.gradients.sides import (
    EITHER_GRADIENT,
    begins_constant,
    carries,
    lost,
    mixed,
    recorded,
)
from graphmend.transforms.legality.in_place import laid_otherwise
from graphmend.transforms.legality.memory import changed_in_place, escapes, only_here, shares
from graphmend.transforms.legality.numbers.as_tensors import PRECISION, PROMOTES, exact_in
from graphmend.transforms.legality.numbers.counterparts import joined
from graphmend.transforms.legality.operations.strides import layout
from graphmend.transforms.legality.outside.identity import identified
from graphmend.transforms.legality.raising.nothing import but_for_none
from graphmend.transforms.legality.same_shape import TensorType, compare, is_sized_by_values, other_sizes
from graphmend.transforms.legality.scalar_uses import NeedsPythonNumberError, ScalarUses
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.transforms.if_conversion.tensor_predicates import Predicates

#: the name under which a returned value is kept
RETURN = "return"

#: asks every use of a selected number whether it takes a 0-d tensor
Asked = Callable[[ScalarUses], None]


class NotSelectableError(Exception):
    """A block that does more than compute, or values that cannot be selected; the message says why."""


class NothingError(NotSelectableError):
    """One of two values is None: only what follows can be selected, not the name itself."""


@dataclass(frozen=True)
class SideValue:
    """A value that one side gives a name: its text there, and what it is."""

    text: str
    node: ast.expr
    meta: TensorType | None
    items: tuple[SideValue, ...] | None = None
    """The parts of a tuple display."""
    number: str | None = None
    """The type of a Python number, also once it was selected and is a 0-d tensor."""
    instead: tuple[ast.expr, ...] = ()
    """What else it is, where it was selected."""
    before: Tensor | None = None
    """The tensor that a name has from before."""
    nothing_at_first: bool = False
    """Is it the value of a name that is None until a loop has given it a tensor?"""

    @property
    def nodes(self) -> tuple[ast.expr, ...]:
        """All expressions that it may be the value of."""
        return (self.node, *self.instead)


def incoming(facts: FunctionFacts, whole: ast.stmt, name: str) -> SideValue:
    """The value that a name has before a statement."""
    value = facts.before(whole).get(name)
    node = ast.Name(name, ast.Load())
    if value is None or (name in locals_of(facts.function) and name not in surely_bound(facts, whole)):
        raise NotSelectableError(f"`{name}` may not be bound before the branch")
    if isinstance(value, Const) and value.value is None:
        raise NothingError(f"`{name}` is None before the branch, which cannot be selected")
    if isinstance(value, Static):
        if value.type in NUMBER_TYPES:
            return SideValue(
                name, ast.Constant(value.value) if isinstance(value, Const) else node, None, None, value.type
            )
        raise NotSelectableError(f"`{name}` is a Python value before the branch, which cannot be selected")
    leaf = ("leaf", name)
    if (given := but_for_none(facts, whole, name, value)) is not None:
        return SideValue(name, node, TensorType(leaf, leaf), before=given, nothing_at_first=True)
    if not isinstance(value, Tensor):
        return SideValue(name, node, TensorType(leaf, leaf, proven=False), before=_or_number(value))
    exact = value.dtype not in ("int", "float", "complex", None)
    dtype = value.dtype if exact else (value.dtype, leaf) if value.dtype else leaf
    shape = () if value.rank == 0 else value.shape if value.shape is not None else leaf
    return SideValue(name, node, TensorType(shape, dtype), before=value)


def _or_number(value: Value) -> Tensor | None:
    """The 0-d tensor that a name has unless it has a number of its kind: what a loop added to a number, if it ran."""
    found = [*options(value)]
    tensors = [o for o in found if isinstance(o, Tensor) and o.rank == 0]
    numbers = {o.type for o in found if isinstance(o, Static)}
    if len(tensors) != 1 or len(found) != 2 or numbers != {dtype_kind(tensors[0].dtype)}:
        return None
    return tensors[0]


def select(predicates: Predicates, test: str, a: SideValue, b: SideValue, asked: Asked | None = None) -> str:
    """`torch.where(test, a, b)`, once both are known to be alike; tuples are selected from part by part.

    Numbers become a 0-d tensor, if `asked` finds that every use of it takes one.
    """
    if a.text == b.text:
        return a.text
    if a.nothing_at_first != b.nothing_at_first:
        return _from_the_first_on(predicates, test, a, b)
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        parts = [select(predicates, test, x, y) for x, y in zip(a.items, b.items, strict=True)]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if any(isinstance(c.node, ast.Constant) and c.node.value is None for c in (a, b)):
        raise NothingError("one side is None, which cannot be selected")
    if a.number and b.number:
        return _select_numbers(predicates, test, a, b, asked)
    if asked is not None and (a.number is None) != (b.number is None):
        if _check_number(predicates, a, b, asked):  # then a test of it may give a Python bool
            test = f"{predicates.imports.name('torch.as_tensor')}({test})"
        return f"{predicates.imports.name('torch.where')}({test}, {a.text}, {b.text})"
    likeness = compare(a.text, a.meta, b.text, b.meta)
    if likeness.blocker:
        if "shapes" in likeness.blocker and _known_while_tracing(predicates.facts, a, b):
            # what differs in them is branched on as before
            chosen = predicates.imports.name("graphmend.runtime.select", "graphmend.runtime")
            one, other = a.text, b.text
            laid = [laid_otherwise(predicates.facts, *pair) for pair in ((a.node, b.node), (b.node, a.node))]
            if laid[0] != laid[1]:  # else strides would differ for certain
                says = "what lies in memory otherwise gets memory of its own"
                predicates.differences += [Difference("strides", says), Difference("exception", says)]
                texts = zip((a.text, b.text), laid, strict=True)
                one, other = (f"{text}{'.contiguous()' if other_laid else ''}" for text, other_laid in texts)
            return f"{chosen}({test}, lambda: {one}, lambda: {other}{_gradients(predicates, a, b)})"
        raise NotSelectableError(likeness.blocker)
    predicates.differences += likeness.differences
    layouts = [layout(predicates.facts, side.node) for side in (a, b)]
    if layouts[0] is None or layouts[0] != layouts[1]:
        says = f"`{a.text}` and `{b.text}` may lie in memory in different orders, of which the result has one"
        predicates.differences.append(Difference("strides", says))
    return f"{predicates.imports.name('torch.where')}({test}, {a.text}, {b.text})"


def _from_the_first_on(predicates: Predicates, test: str, a: SideValue, b: SideValue) -> str:
    """What is selected from a name that is None at first: then there is nothing to select from."""
    kept, given = (a, b) if a.nothing_at_first else (b, a)
    if given.meta is None or not given.meta.proven:
        raise NotSelectableError(f"`{given.text}` is not known to be a tensor")
    says = f"`{kept.text}` is `{given.text}` where the branch was never taken, and raises no more for being None"
    predicates.differences.append(Difference("exception", says))
    a, b = replace(a, nothing_at_first=False), replace(b, nothing_at_first=False)
    chosen = select(predicates, test, a, b)
    return f"({given.text} if {kept.text} is None else {chosen})"


def _gradients(predicates: Predicates, a: SideValue, b: SideValue) -> str:
    """What `graphmend.runtime.select` is told about gradients, where one value may ask for them alone."""
    facts = predicates.facts
    perhaps = any(isinstance(side.node, ast.Name) and begins_constant(facts, side.node.id) for side in (a, b))
    either = perhaps or mixed(facts, *(carries(facts, side.node) for side in (a, b)))
    if not recorded(facts, facts.statement) or not either:
        return ""
    predicates.differences.append(EITHER_GRADIENT)
    return ", mixed_grad=True"


def _known_while_tracing(facts: FunctionFacts, a: SideValue, b: SideValue) -> bool:
    """Are two values tensors for certain, whose shapes may be found equal there, as values do not decide them?"""
    if any(is_sized_by_values(facts, node) for side in (a, b) for node in nodes_in(side.node)):
        return False
    proven = all(side.meta is not None and side.meta.proven for side in (a, b))
    return proven and not (other_sizes(facts, a.node, b.node) or other_sizes(facts, b.node, a.node))


@answers("memory")
def aliasing(
    facts: FunctionFacts, name: str | None, a: SideValue, b: SideValue, statement: ast.stmt
) -> list[Difference]:
    """What differs as a side that hands an existing tensor on, to a name, a place or the unknown (None), gives a copy
    now. Refuses where that is changed in place.
    """
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        parts = zip(a.items, b.items, strict=True)
        return [d for x, y in parts for d in aliasing(facts, name, x, y, statement)]
    if a.text == b.text or all(shares(facts, node).fresh for side in (a, b) for node in side.nodes):
        return []
    found = []
    if name is not None and identified(facts, name):
        raise NotSelectableError(f"which tensor `{name}` is asked for, and it would be a copy")
    kept = [n for side in (a, b) for n in side.nodes if not shares(facts, n).fresh]
    if name is None and changed_in_place(facts, *kept, behind=statement):
        raise NotSelectableError("the result is changed in place, and would be a copy of the tensor that it is now")
    if name is None or name == RETURN:
        found.append(Difference("aliasing", "the result is a copy where a side gives an existing tensor"))
    elif name.isidentifier() and only_here(facts, name, (*a.nodes, *b.nodes), statement):
        pass  # nobody can tell a copy from what it was
    elif (
        changed_in_place(facts, name, behind=statement) if name.isidentifier() else _parts(facts, name, a, b, statement)
    ):
        raise NotSelectableError(f"`{name}` is changed in place, and would be a copy of the tensor that it is now")
    elif not name.isidentifier() or escapes(facts, name):
        found.append(Difference("aliasing", f"`{name}` is bound to a copy where a side keeps an existing tensor"))
    return [*found, *lost(facts, statement, "the tensor that is kept loses its gradient history")]


def _parts(facts: FunctionFacts, place: str, a: SideValue, b: SideValue, statement: ast.stmt) -> bool:
    """Is what a place keeps, or what it may have been given, changed in place behind a statement, so that the copy and
    the tensor come apart? What another name has as well may also be changed before it, by the next call.
    """
    kept, nodes = ast.parse(place, mode="eval").body, (*a.nodes, *b.nodes)
    others = [node for node in nodes if ast.unparse(node) != place and not shares(facts, node).fresh]
    return changed_in_place(facts, kept, *nodes, behind=statement) or (
        bool(others) and changed_in_place(facts, kept, *others)
    )


def _select_numbers(predicates: Predicates, test: str, a: SideValue, b: SideValue, asked: Asked | None) -> str:
    if a.number != b.number:
        a, b = _as_floats(predicates, a, b)
    if asked is None:
        raise NotSelectableError(f"`{a.text}` is a Python number, and would be returned as a tensor")
    exact = all(_in_float32(c) for c in (a, b))
    wanted = {"int": "int64", "bool": "bool"}.get(a.number or "", "float32" if exact else "float64")
    may_say = predicates.elsewhere is not None
    dtype, uses = as_tensor(predicates.facts, wanted, asked, says=may_say, converts=predicates.converts)
    _written_elsewhere(predicates, uses)
    exact = exact or dtype == "float32"
    predicates.differences += uses.differences
    if (constant(a.node), constant(b.node)) == (True, False) and a.number == "bool":
        return test
    first = a.text
    if not exact:  # `where` would make a float32 of two floats
        imports = predicates.imports
        first = f"{imports.name('torch.as_tensor')}({a.text}, dtype={imports.name('torch.float64')})"
    return f"{predicates.imports.name('torch.where')}({test}, {first}, {b.text})"


def _as_floats(predicates: Predicates, a: SideValue, b: SideValue) -> tuple[SideValue, SideValue]:
    """Two numbers of which one is a float and the other is written as a whole number: as floats."""
    if {a.number, b.number} == {"int", "float"}:
        whole = a if a.number == "int" else b
        value = constant(whole.node)
        if isinstance(value, int) and abs(value) <= _WHOLE_FLOATS:
            node = ast.copy_location(ast.Constant(float(value)), whole.node)
            says = f"`{whole.text}` counts as a float, which makes floats of whole numbers"
            predicates.differences.append(Difference("dtype", says))
            floating = replace(whole, text=repr(float(value)), node=node, number="float")
            return (floating, b) if whole is a else (a, floating)
    raise NotSelectableError(f"`{a.text}` and `{b.text}` are numbers of different types")


#: up to this all whole numbers are floats
_WHOLE_FLOATS = 2**53


def as_tensor(
    facts: FunctionFacts,
    dtype: str,
    asked: Asked,
    *,
    rewrites: bool = False,
    says: bool = False,
    converts: ast.stmt | None = None,
) -> tuple[str, ScalarUses]:
    """The dtype of a 0-d tensor that stands for a Python number, at most `dtype`, and what its uses said.

    A float64 has the number's own precision, but makes float64 of other tensors without dimensions: where it meets
    such, the number has torch's usual precision.
    """
    for tried in (dtype, *(("float32",) if dtype == "float64" else ())):
        uses = ScalarUses(facts, tried, rewrites=rewrites, says=says, converts=converts)
        try:
            asked(uses)
        except NeedsPythonNumberError as error:
            raise NotSelectableError(str(error)) from error
        if PROMOTES not in uses.differences:
            break
    if tried == "float32" and dtype == "float64":
        uses.differences.append(PRECISION)
    return tried, uses


def _check_number(predicates: Predicates, a: SideValue, b: SideValue, asked: Asked) -> bool:
    """A tensor and a number that its dtype holds: where the number is taken, a tensor of it stands for it. Whether the
    tensor may be a number, too.
    """
    tensor, number = (b, a) if a.number else (a, b)
    value = tensor.before or predicates.facts.value(tensor.node)
    literal = constant(number.node)
    holding = {"bool": {"bool"}, "int": {"int", "float"}, "float": {"float"}}.get(number.number or "", set())
    possible = kinds(predicates.facts, tensor.node)
    if not (isinstance(value, Tensor) and not value.ndarray and possible & holding):
        raise NotSelectableError(f"of `{a.text}` and `{b.text}` only one is a tensor")
    if value.rank != 0:
        fits = literal in (0, 1) or (isinstance(literal, (int, float)) and exact_in(literal, value.dtype))
        if tensor.before is not None or not fits or not _meets_as_many(predicates.facts, tensor.node, number.node):
            raise NotSelectableError(f"of `{a.text}` and `{b.text}` only one is a tensor")
        says = f"`{number.text}` becomes a tensor of the shape of `{tensor.text}`, as does what is computed with it"
        predicates.differences.append(Difference("shape", says))
    either = tensor.before is not None and tensor.meta is not None and not tensor.meta.proven
    if either:
        says = f"`{tensor.text}` is a 0-d tensor where it was a Python number, as no iteration changed it"
        predicates.differences.append(Difference("type", says))
    elif not possible <= holding:
        says = f"the result has one dtype, where `{tensor.text}` may have another than `{number.text}`"
        predicates.differences.append(Difference("dtype", says))
    if not isinstance(literal, (bool, int, float)) or not exact_in(literal, value.dtype):
        predicates.differences.append(PRECISION)
    may_say = predicates.elsewhere is not None
    uses = ScalarUses(predicates.facts, value.dtype, says=may_say, converts=predicates.converts)
    try:
        asked(uses)
    except NeedsPythonNumberError as error:
        if tensor.before is None or (either and not _is_tensor_but_here(predicates.facts, tensor.text)):
            raise NotSelectableError(str(error)) from error
        # whatever reads the name is given a tensor already, where the branch keeps that
        says = f"`{tensor.text}` is a 0-d tensor where the branch gave it a Python number"
        predicates.differences.append(Difference("type", says))
        return False
    _written_elsewhere(predicates, uses)
    predicates.differences += uses.differences
    return either


def _meets_as_many(facts: FunctionFacts, tensor: ast.expr, number: ast.expr) -> bool:
    """Is a tensor or a number that one expression gives computed with a tensor that is not known to have no dimensions?
    Where the number fills the tensor's shape, another one would be repeated.
    """
    chosen = facts.parent(tensor)
    if not isinstance(chosen, ast.IfExp) or facts.parent(number) is not chosen:
        return False
    match meets := facts.parent(chosen):
        case ast.BinOp(left=left, right=right):
            value = facts.value(right if left is chosen else left)
            return isinstance(value, Tensor) and value.rank != 0 and is_tensor(facts, meets)
    return False


def _is_tensor_but_here(facts: FunctionFacts, name: str) -> bool:
    """Does a name hold a tensor of one element in front of the loops around a branch, and wherever these bind it but
    for the branch itself?
    """
    loops = [a for a in facts.ancestors(facts.statement) if isinstance(a, (ast.For, ast.While))]
    inside = {*nodes_in(facts.statement)}
    first = facts.before(loops[-1]).get(name) if loops else None
    bound = [
        facts.value(s.value) if isinstance(s := facts.parent(n), ast.Assign) and s.targets == [n] else None
        for n in (n for loop in loops[-1:] for n in nodes_in(loop))
        if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) and n not in inside
    ]
    return all(isinstance(v, Tensor) and v.rank == 0 for v in (first, *bound))


def _written_elsewhere(predicates: Predicates, uses: ScalarUses) -> None:
    if uses.also:
        raise NotSelectableError(f"`{ast.unparse(uses.also[0])}` stays a Python number")
    if predicates.elsewhere is not None:
        joined(predicates.elsewhere, uses.counterparts)


def _in_float32(choice: SideValue) -> bool:
    """Is a number the same in float32, so that its first `where` may make one of it?"""
    if choice.number != "float":
        return True
    value = constant(choice.node)
    if not isinstance(value, float):
        return False
    try:
        return bool(struct.unpack("f", struct.pack("f", value))[0] == value)
    except OverflowError:
        return False
