"""Elements that a mask picks out of a tensor, and the tensor as a whole under that mask. Asked by the rewrites that
work on all elements instead of on those picked.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import UNKNOWN, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, method, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.operations import rowwise
from graphmend.transforms.legality.operations.derivatives import SINGULAR_AT_ONE
from graphmend.transforms.legality.raising.tensors import for_some_values
from graphmend.transforms.legality.rows.kinds import divided
from graphmend.transforms.legality.rows.through import works_through
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Picked(NamedTuple):
    """`tensor[mask]`."""

    tensor: ast.expr
    mask: ast.expr


def singular_at_one(facts: FunctionFacts, nodes: Iterable[ast.expr]) -> str | None:
    """A function in expressions that has no finite derivative at 1, which stands in for elements that do not count."""
    calls = [n for node in nodes for n in nodes_in(node) if isinstance(n, ast.Call)]
    names = {(qualified(facts, c.func) or "").rpartition(".")[2] for c in calls}
    return min(names & SINGULAR_AT_ONE, default=None)


@answers("domain")
def picked(facts: FunctionFacts, node: ast.AST) -> Picked | None:
    """`x[m]` or `x.masked_select(m)`."""
    match node:
        case ast.Subscript(value=value, slice=mask) if is_mask(facts, mask):
            indexed_so = facts.value(value) is UNKNOWN and is_tensor(facts, node)
            return Picked(value, mask) if indexed_so or is_tensor(facts, value) else None
    found = selected(facts, node)
    # `masked_select` broadcasts both: only a mask of the same shape means the same as an index
    return found if found is not None and same_shape(facts, *found) else None


@answers("domain")
def selected(facts: FunctionFacts, node: ast.AST) -> Picked | None:
    """`x.masked_select(m)`, where either may be broadcast."""
    match node:
        case ast.Call(func=ast.Attribute(value=value, attr="masked_select"), args=[mask], keywords=[]) if is_tensor(
            facts, value
        ):
            return Picked(value, mask)
        case ast.Call(args=[value, mask], keywords=[]) if called(facts, node, "torch.masked_select"):
            return Picked(value, mask)
    return None


@answers("domain")
def is_mask(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Tensor) and value.dtype == "bool" and not value.ndarray


@answers("domain")
def is_line(facts: FunctionFacts, mask: ast.expr) -> bool:
    """Has a mask one dimension for certain?"""
    value = facts.value(mask)
    return isinstance(value, Tensor) and value.rank == 1


@answers("domain")
def missing_dimensions(facts: FunctionFacts, found: Picked) -> int | None:
    """How many dimensions a mask has fewer than its tensor; None where that is not known."""
    one, two = facts.value(found.tensor), facts.value(found.mask)
    if not isinstance(one, Tensor) or not isinstance(two, Tensor):
        return None
    if one.rank is not None and two.rank is not None:
        return one.rank - two.rank
    return 0 if same_shape(facts, found.tensor, found.mask) else None


@answers("domain")
def aligned(facts: FunctionFacts, found: Picked, name: str | None = None) -> str:
    """The mask, or the `name` that it has, as text that broadcasts against its tensor: a mask picks by the leading
    dimensions.
    """
    code, fewer = Code(facts.source), missing_dimensions(facts, found)
    if fewer == 0:
        return name or code.argument(found.mask)
    mask, tensor = name or code.operand(found.mask), code.operand(found.tensor)
    if fewer is not None:
        return f"{mask}[...{', None' * fewer}]"
    return f"{mask}.reshape({tensor}.shape[: {mask}.dim()] + (1,) * ({tensor}.dim() - {mask}.dim()))"


@answers("shapes")
def other_shape(facts: FunctionFacts, found: Picked) -> list[Difference]:
    """What differs where a mask does not have the shape of what it picks from: the index raises then."""
    if same_shape(facts, found.tensor, found.mask):
        return []
    mask, tensor = ast.unparse(found.mask), ast.unparse(found.tensor)
    return [Difference("exception", f"`{mask}` is taken to have the shape of `{tensor}`, and may broadcast or raise")]


@answers("shapes")
def other_rank(facts: FunctionFacts, one: ast.expr, other: ast.expr) -> bool:
    """Have two tensors different numbers of dimensions for certain? What one mask picks out of them meets otherwise
    than they do: by broadcasting.
    """
    a, b = facts.value(one), facts.value(other)
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return False
    return a.rank is not None and b.rank is not None and a.rank != b.rank


@answers("shapes")
def other_ranks_meet(facts: FunctionFacts, node: ast.expr, picks: Container[ast.expr]) -> bool:
    """Do what is made of `picks`, of different numbers of dimensions for certain, meet element by element?"""
    for one in nodes_in(node):
        match one:
            case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.MatMult):
                parts = [left, right]
            case ast.Compare(left=left, comparators=rights):
                parts = [left, *rights]
            case ast.Call(func=function, args=args) if works_on_each(facts, one):
                parts = [*([function.value] if isinstance(function, ast.Attribute) else []), *args]
            case _:
                continue
        made = [facts.value(p) for p in parts if any(n in picks for n in nodes_in(p) if isinstance(n, ast.expr))]
        if len({v.rank for v in made if isinstance(v, Tensor) and v.rank}) > 1:
            return True
    return False


def _word(facts: FunctionFacts, function: ast.expr) -> str:
    return (qualified(facts, function) or "").rpartition(".")[2]


@answers("shapes")
def other_size(facts: FunctionFacts, one: ast.expr, other: ast.expr, dim: int) -> list[Difference] | None:
    """What differs where two tensors do not have one size in a dimension; None where they do not for certain."""
    if ast.unparse(one) == ast.unparse(other) or same_shape(facts, one, other):
        return []
    sizes = [_size(facts, n, dim) for n in (one, other)]
    if None not in sizes:
        return [] if sizes[0] == sizes[1] else None
    says = f"`{ast.unparse(one)}` and `{ast.unparse(other)}` are taken to have one size where they are sliced"
    return [Difference("exception", f"{says}, and may broadcast or raise")]


def _size(facts: FunctionFacts, node: ast.expr, dim: int) -> int | None:
    value = facts.value(node)
    if not isinstance(value, Tensor) or not isinstance(value.shape, tuple) or len(value.shape) != value.rank:
        return None
    size = value.shape[dim] if dim < len(value.shape) else None
    return size if isinstance(size, int) else None


@answers("shapes")
def unlike(facts: FunctionFacts, one: ast.expr, other: ast.expr) -> list[Difference]:
    """What differs where two tensors that one mask picks from do not have one shape."""
    if ast.unparse(one) == ast.unparse(other) or same_shape(facts, one, other):
        return []
    says = f"`{ast.unparse(one)}` and `{ast.unparse(other)}` are taken to have one shape, and may broadcast or raise"
    return [Difference("exception", says)]


@answers("shapes")
def same_shape(facts: FunctionFacts, one: ast.expr, other: ast.expr) -> bool:
    """Are two tensors known to have one shape: by the analysis, or because each is made of one tensor, element by
    element?
    """
    a, b = facts.value(one), facts.value(other)
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        return False
    if a.shape is not None and a.shape == b.shape:
        return True
    root = _root(facts, one, _place(facts.statement))
    return root is not None and root == _root(facts, other, _place(facts.statement))


_Place = tuple[int, int]

_RESHAPE_IN_PLACE = frozenset("resize_ resize_as_ squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ set_".split())


def _root(facts: FunctionFacts, node: ast.expr, at: _Place) -> tuple[str, _Place] | None:
    """The name, and where it was bound last, whose shape a value has, evaluated at a place."""
    if number_type(facts, node) is not None or not is_tensor(facts, node):
        return None
    match node:
        case ast.Name(id=name):
            return _name_root(facts, name, at)
        case ast.BinOp(left=left, op=op, right=right) if not isinstance(op, ast.MatMult):
            parts = [left, right]
        case ast.Compare(left=left, comparators=[right]):
            parts = [left, right]
        case ast.UnaryOp(operand=operand):
            parts = [operand]
        case ast.Call(func=ast.Attribute(attr="expand_as" | "view_as" | "reshape_as"), args=[like], keywords=[]):
            parts = [like]
        case ast.Call(func=ast.Attribute(value=value, attr="to" | "type_as")):
            parts = [value]
        case ast.Call(func=function, args=args, keywords=[]):
            folder, _, last = (qualified(facts, function) or "").rpartition(".")
            if folder not in known.FUNCTIONAL or last not in WORKS:
                return None
            receiver = [function.value] if folder == "torch.Tensor" and isinstance(function, ast.Attribute) else []
            parts = [*receiver, *args]
        case _:
            return None
    shaped = [p for p in parts if not (number_type(facts, p) is not None or _is_single(facts, p))]
    roots = {_root(facts, p, at) for p in shaped}
    return roots.pop() if len(roots) == 1 else None


def _name_root(facts: FunctionFacts, name: str, at: _Place) -> tuple[str, _Place] | None:
    """Follows a name that is bound once; others are roots, where no later binding, and no loop, changes them."""
    stores = [n for n in nodes_in(facts.function) if isinstance(n, ast.Name) and n.id == name]
    stores = [n for n in stores if not isinstance(n.ctx, ast.Load)]
    changed = any(isinstance(n, ast.Attribute) and n.attr in _RESHAPE_IN_PLACE for n in nodes_in(facts.function))
    bound = [s for n in stores if isinstance(s := facts.parent(n), ast.stmt) and not isinstance(s, ast.AugAssign)]
    looped = any(isinstance(a, (ast.For, ast.While)) for n in stores for a in facts.ancestors(n))
    if changed or len(bound) < sum(not isinstance(facts.parent(n), ast.AugAssign) for n in stores) or looped:
        return None
    places = [_place(s) for s in bound]
    if any(place >= at for place in places):
        return None
    last = max(bound, key=_place, default=None)
    for_all = last is None or last in facts.function.body  # whatever is bound in branches above it
    only = last if for_all or (len(bound) == 1 and name not in parameters(facts.function)) else None
    if isinstance(only, ast.Assign) and (inner := _root(facts, only.value, _place(only))) is not None:
        return inner
    return (name, max(places, default=(0, 0))) if for_all or len(bound) == 1 else None


def _place(node: ast.stmt) -> _Place:
    return node.lineno, node.col_offset


def _is_single(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    return isinstance(value, Tensor) and value.rank == 0


@answers("dtypes")
def same_dtype(facts: FunctionFacts, one: ast.expr, other: ast.expr) -> bool:
    """Are two tensors known to have one dtype, not only one kind of it?"""
    a, b = facts.value(one), facts.value(other)
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or a.dtype is None or a.dtype != b.dtype:
        return False
    return a.dtype not in ("int", "float", "complex")


@answers("shapes")
def of_nothing(facts: FunctionFacts, place: Picked, value: ast.expr) -> list[Difference] | None:
    """How storing a value to `place` differs where the mask picks nothing: what does not fit raises there, too. None
    where it is no number and no tensor, or picked by a mask itself.
    """
    if isinstance(constant(value), (int, float)):
        return []
    given, tensor, mask = facts.value(value), facts.value(place.tensor), facts.value(place.mask)
    if not isinstance(given, Tensor) or given.ndarray or any(picked(facts, n) for n in nodes_in(value)):
        return None
    found = []
    ranks = [v.rank if isinstance(v, Tensor) else None for v in (given, tensor, mask)]
    if ranks[0] == 0:
        return []
    if None in ranks or ranks[0] > ranks[1] - ranks[2]:  # type: ignore[operator]
        says = f"`{ast.unparse(value)}` that is not one value for all places raises where none is picked"
        found.append(Difference("exception", says))
    if not same_dtype(facts, place.tensor, value):
        found.append(Difference("exception", f"`{ast.unparse(value)}` of another dtype raises where nothing is picked"))
    return found


@answers("domain")
def picks_in(facts: FunctionFacts, node: ast.AST, mask: ast.expr) -> dict[ast.expr, Picked]:
    """The places in an expression that pick elements by a mask."""
    wanted = ast.unparse(mask)
    found = {n: p for n in nodes_in(node) if isinstance(n, ast.expr) and (p := picked(facts, n)) is not None}
    return {n: p for n, p in found.items() if ast.unparse(p.mask) == wanted}


_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.BitAnd, ast.BitOr, ast.BitXor)


@answers("domain")
def one_by_one(facts: FunctionFacts, node: ast.expr, picks: Container[ast.expr]) -> bool:
    """Is each element of a value computed from the element at its own place in each of `picks`, and from numbers and
    0-d tensors? What reduces picked elements, or picks otherwise, is of them all, and not of one.
    """
    if node in picks:
        return True
    if not any(n in picks or picked(facts, n) for n in nodes_in(node) if isinstance(n, ast.expr)):
        value = facts.value(node)
        return number_type(facts, node) is not None or (isinstance(value, Tensor) and value.rank == 0)
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            works = isinstance(op, _OPERATORS) and not for_some_values(facts, op, left, right)
            parts = [left, right] if works else None
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Invert(), operand=operand):
            parts = [operand]
        case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq() | ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]):
            parts = [left, *node.comparators]
        case ast.Call() if works_through(facts, node, picks, one_by_one):
            return True
        case ast.Call(func=function, args=args, keywords=keywords):
            folder, _, last = (qualified(facts, function) or "").rpartition(".")
            receiver = [function.value] if folder == "torch.Tensor" and isinstance(function, ast.Attribute) else []
            given = {k.arg: k.value for k in keywords}
            options = [v for k, v in given.items() if not (rowwise.is_loss_of_each(last, given) and k == "reduction")]
            parts = [*receiver, *args, *options] if works_on_each(facts, node) and None not in given else None
        case _:
            parts = None
    return parts is not None and all(one_by_one(facts, p, picks) for p in parts)


@answers("domain")
def works_on_each(facts: FunctionFacts, call: ast.Call) -> bool:
    """Does a function work on each element by itself, and raise for none: also the greater, or less, of two tensors?"""
    folder, _, last = (qualified(facts, call.func) or "").rpartition(".")
    if folder not in known.FUNCTIONAL:
        return False
    done = divided(call, last, method=folder == "torch.Tensor")
    if done is not None and for_some_values(facts, *done):
        return False
    if last in ("max", "min"):
        arguments = call.args if folder == "torch.Tensor" else call.args[1:]
        return len(arguments) == 1 and not call.keywords and is_tensor(facts, arguments[0])
    if last == "where":  # with one argument alone it gives places
        return len(call.args) == (2 if folder == "torch.Tensor" else 3)
    return last in WORKS or rowwise.is_loss_of_each(last, {k.arg: k.value for k in call.keywords})


#: elementwise functions, whatever the dtype; what is in new memory that is not written has no value to keep
WORKS = (known.ELEMENTWISE | known.ARITHMETIC | known.TESTS | known.CASTS) - {"empty_like"}


class Nonzero(NamedTuple):
    """The places at which a tensor is not zero."""

    mask: ast.expr
    as_tuple: bool
    """One tensor for each dimension, instead of a row for each place?"""


@answers("domain")
def nonzero_of(facts: FunctionFacts, node: ast.AST) -> Nonzero | None:
    """`torch.where(m)`, `m.nonzero()`, `torch.nonzero(m, as_tuple=True)`, `torch.argwhere(m)`."""
    if not isinstance(node, ast.Call):
        return None
    if called(facts, node, "torch.where") and len(node.args) == 1 and not node.keywords:
        return Nonzero(node.args[0], True)
    options = {k.arg: constant(k.value) for k in node.keywords}
    as_tuple = options.pop("as_tuple", False)
    if options or not isinstance(as_tuple, bool):
        return None
    if called(facts, node, "torch.nonzero", "torch.argwhere") and len(node.args) == 1:
        return Nonzero(node.args[0], as_tuple)
    if method(facts, node, "nonzero", "argwhere") and not node.args and isinstance(node.func, ast.Attribute):
        return Nonzero(node.func.value, as_tuple) if is_tensor(facts, node.func.value) else None
    return None


class Indexed(NamedTuple):
    """`tensor[by]`, of whole rows."""

    tensor: ast.expr
    by: ast.expr


@answers("domain")
def indexed(facts: FunctionFacts, node: ast.AST | None) -> Indexed | None:
    """`x[i]`, `x.index_select(0, i)`, `torch.index_select(x, 0, i)`, where `i` is all that it is indexed by."""
    if isinstance(node, ast.Subscript):
        return Indexed(node.value, node.slice) if is_tensor(facts, node.value) else None
    if not isinstance(node, ast.Call):
        return None
    given = {k.arg or "": k.value for k in node.keywords}
    if method(facts, node, "index_select") and isinstance(node.func, ast.Attribute):
        places = [node.func.value, *node.args]
    elif called(facts, node, "torch.index_select"):
        places = [*node.args]
    else:
        return None
    given |= dict(zip(("input", "dim", "index"), places, strict=False))
    if set(given) != {"input", "dim", "index"} or constant(given["dim"]) != 0 or not is_tensor(facts, given["input"]):
        return None
    return Indexed(given["input"], given["index"])
