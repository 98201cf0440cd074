"""What backward sees of a tensor that is changed in place: old values that it still needs, and leaves.

An operation in place saves a copy of the value that it changes, if its derivative needs it; the form that leaves its
tensor alone saves the tensor itself, and backward raises once that was changed (torch 2.13).
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Scalar, Static, Tensor, dtype_kind
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings
from graphmend.transforms.code.liveness import parameters, stored
from graphmend.transforms.code.qualified_names import is_tensor, makes_tensor, method, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.gradients.sides import carries
from graphmend.transforms.legality.memory import OUTSIDE, shares
from graphmend.transforms.legality.operations import aliases
from graphmend.transforms.legality.operations.strides import layout
from graphmend.transforms.legality.own_functions import handed_over
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: operators whose derivative does not need their result
_RESULT_UNUSED = (ast.Add, ast.Sub, ast.Mult, ast.Div)
#: methods whose derivative needs none of their values
_VALUE_UNUSED = frozenset("add sub subtract neg negative masked_fill clone detach".split())
_SCALED = frozenset("mul multiply div divide true_divide".split())


@answers("gradients")
def intact(facts: FunctionFacts, statement: ast.stmt, text: str, *, linear: bool) -> str:
    """The text of a tensor that is read before it is changed, as a copy where backward may need the value read."""
    return text if linear or facts.gradients(statement) == "off" else f"{text}.clone()"


@answers("gradients")
def linear_operator(facts: FunctionFacts, operator: ast.operator, other: ast.expr) -> bool:
    """Does backward of `y <operator> other` need no value of `y`?"""
    if isinstance(operator, (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor)):  # whole numbers have no backward
        return True
    return isinstance(operator, (ast.Mult, ast.Div)) and number_type(facts, other) is not None


@answers("gradients")
def linear_method(facts: FunctionFacts, name: str, arguments: list[ast.expr]) -> bool:
    """Does backward of `y.name(arguments)` need no value of `y`?"""
    return name in _VALUE_UNUSED or (
        name in _SCALED and len(arguments) == 1 and number_type(facts, arguments[0]) is not None
    )


@answers("gradients")
def linear(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does backward of arithmetic need none of the values that go into it?"""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            scaled = isinstance(op, ast.Mult) and number_type(facts, left) is not None
            return (scaled or linear_operator(facts, op, right)) and linear(facts, left) and linear(facts, right)
        case ast.UnaryOp(operand=operand):
            return linear(facts, operand)
    return not isinstance(node, ast.Call) or method(facts, node, "masked_select") is not None


@answers("memory")
def apart(facts: FunctionFacts, one: ast.expr, other: ast.expr) -> bool:
    """Are two tensors known to share no memory: new ones, of which at most one is a parameter?"""
    if not (isinstance(one, ast.Name) and isinstance(other, ast.Name)) or one.id == other.id:
        return False
    bound = [bound_to(facts, name) for name in (one.id, other.id)]
    if not all(bound) and {one.id, other.id} <= {*parameters(facts.function)}:
        return False
    known = {*parameters(facts.function)}
    return all(
        all(is_new(facts, v) for v in values) and (values or name.id in known)
        for name, values in zip((one, other), bound, strict=True)
    )


@answers("gradients")
def writable(facts: FunctionFacts, statement: ast.stmt, name: str) -> bool:
    """May the tensor `name` be changed by a statement without backward noticing: is it a new one, which nothing that
    backward knows of has read? What is changed where gradients are off, and masks and indices, may well be kept for it.
    """
    between: list[ast.stmt] = []
    inside: ast.AST = statement
    for above in (*facts.ancestors(statement), facts.function):
        blocks = (getattr(above, part, ()) for part in ("body", "orelse", "finalbody"))
        for block in (b for b in blocks if isinstance(b, list) and inside in b):
            for earlier in reversed(block[: block.index(inside)]):
                match earlier:
                    case ast.Assign(targets=[target], value=value) if _is(target, name):
                        reads = (n for s in between for n in nodes_in(s) if _is(n, name))
                        unread = all(_leaves_no_trace(facts, n) for n in reads) and not _captured(facts, name)
                        return unread and (is_new(facts, value) or _has_no_history(facts, earlier, value))
                between.append(earlier)
        if above is facts.function or not isinstance(above, (ast.With, ast.If)):
            return False
        inside = above
    return False


def _has_no_history(facts: FunctionFacts, statement: ast.stmt, node: ast.expr) -> bool:
    """Is a value new memory that no backward goes through: of whole numbers, made where gradients are off, or computed
    from what never asks for any?
    """
    value = facts.value(node)
    whole = isinstance(value, Tensor) and (dtype_kind(value.dtype) in ("bool", "int") or not carries(facts, node))
    return (whole or facts.gradients(statement) == "off") and shares(facts, node).fresh


def _leaves_no_trace(facts: FunctionFacts, read: ast.AST) -> bool:
    """Is a tensor read by an operation that gives new memory and no part of a graph, which would keep what it reads?"""
    used: ast.AST = read
    while isinstance(above := facts.parent(used), ast.expr):
        used = above
        if not isinstance(used, ast.Attribute):
            break
    statement = next((a for a in facts.ancestors(used) if isinstance(a, ast.stmt)), None)
    return (
        used is not read
        and isinstance(used, ast.expr)
        and statement is not None
        and (isinstance(facts.value(used), Scalar | Static) or _has_no_history(facts, statement, used))
    )


@answers("memory")
def dense(facts: FunctionFacts, statement: ast.stmt, tensor: ast.expr) -> bool:
    """Is a tensor known, before a statement, to be of memory that is not expanded: each element has its own place?"""
    if not isinstance(tensor, ast.Name):
        return False
    here: ast.AST | None = statement
    while isinstance(here, ast.stmt) and here is not facts.function:
        block = facts.body_of(here)
        for bound in reversed(block[: block.index(here)]):
            if tensor.id not in stored([bound]):
                continue
            if isinstance(bound, ast.AugAssign) and isinstance(facts.before(bound).get(tensor.id), Tensor):
                continue  # changed in place: its memory stays
            plain = isinstance(bound, ast.Assign) and all(isinstance(t, ast.Name) for t in bound.targets)
            return plain and isinstance(bound, ast.Assign) and _allocates(facts, bound.value)
        here = facts.parent(here)
        if isinstance(here, (ast.For, ast.While)) and tensor.id in stored([here]):
            return False
    return False


def _allocates(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does an expression's last operation allocate what it gives?"""
    if not is_tensor(facts, node) or not shares(facts, node).fresh:
        return False
    if isinstance(node, ast.Call):
        last = (qualified(facts, node.func) or "").rpartition(".")[2]
        return last in aliases.NEW and last not in ("empty_strided", "new_empty_strided")
    if isinstance(node, ast.UnaryOp):  # `+x` is `x`
        return isinstance(node.op, (ast.USub, ast.Invert))
    return isinstance(node, (ast.BinOp, ast.Compare))


def written_on_both_sides(name: str) -> Difference:
    return Difference(
        "exception",
        f"`{name}` is written to on both sides, which raises for a leaf that asks for gradients, and where backward "
        "needs the old value",
    )


@answers("gradients")
def recomputed(facts: FunctionFacts) -> Difference | None:
    """What backward sees where a value enters the graph that is read from memory which outlives the graph, and which
    the function changes in place, before or behind it. Such a value is not saved: it is computed again from the memory
    as it is by then (`aot_eager` and `inductor`, torch 2.13; a copy in the graph does not help).
    """
    changed = [(node, shares(facts, target)) for node, target in changes(facts)]
    lasting = [(node, there) for node, there in changed if OUTSIDE in there.bases]
    if not lasting or not _differentiable(facts):
        return None
    for read in _read_by(facts, _head(facts.statement), set()):
        own = shares(facts, read)
        for node, there in lasting:
            if OUTSIDE in own.bases and own.paths & there.paths and not any(n is read for n in _targets(node)):
                text = ast.unparse(read)
                says = f"with torch 2.13 backward computes again what is read from `{text}`, which is changed in place"
                return Difference("gradients", f"gradients may be of the changed value: {says}")
    return None


#: operations whose backward pass reads their result (measured with torch 2.13)
_READ_AGAIN = frozenset(
    "amax cumprod det exp exp2 expm1 log_softmax logsumexp max norm pinverse prod reciprocal relu rsqrt sigmoid "
    "softmax sqrt std tan tanh".split()
)


@answers("memory")
def needed(facts: FunctionFacts) -> Difference | None:
    """What a graph that backward can be asked of raises for at once: a result that backward reads, and that the
    function changes in place (`aot_eager` and `inductor`, torch 2.13). Plain Python raises in backward alone.
    """
    for change, target in changes(facts):
        if any(isinstance(a, ast.stmt) and facts.gradients(a) == "off" for a in (change, *facts.ancestors(change))):
            continue
        bound = bindings(facts).get(target.id, ()) if isinstance(target, ast.Name) else ()
        for value in (one.value for one in bound if isinstance(one.value, ast.Call)):
            if (qualified(facts, value.func) or "").rpartition(".")[2] in _READ_AGAIN and carries(facts, value):
                says = f"where gradients are wanted, one graph raises for `{ast.unparse(target)}`, which backward reads"
                return Difference("exception", f"{says} and which is changed in place; plain Python raises in backward")
    return None


_INFERENCE = "torch.inference_mode"


@answers("memory")
def inferred(facts: FunctionFacts) -> ast.AST | None:
    """What no graph compiles under `torch.inference_mode`: something from outside that is changed in place
    (`aot_eager` and `inductor`, torch 2.13), and that a break leaves to plain Python.
    """
    modes = [*facts.function.decorator_list, *(i for n in nodes_in(facts.function) for i in getattr(n, "items", ()))]
    named = (getattr(mode, "context_expr", mode) for mode in modes)
    if not any(qualified(facts, m.func if isinstance(m, ast.Call) else m) == _INFERENCE for m in named):
        return None
    for _, target in changes(facts):
        if not (isinstance(target, ast.Name) and bindings(facts).get(target.id)):
            return target
    return None


def _differentiable(facts: FunctionFacts) -> bool:
    """May gradients flow through anything that leaves the function?"""
    for node in nodes_in(facts.function):
        if isinstance(node, (ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        returned = node.value if isinstance(node, ast.Return) else None
        if isinstance(node, ast.Return) and returned and facts.gradients(node) != "off" and carries(facts, returned):
            return True
    return any(carries(facts, node) for node in handed_over(facts))


def _head(statement: ast.stmt) -> list[ast.AST]:
    """What a statement evaluates itself; a block in it evaluates the rest."""
    match statement:
        case ast.If(test=asked) | ast.While(test=asked) | ast.For(iter=asked) | ast.Match(subject=asked):
            return [asked]
    return [statement]


def _targets(change: ast.AST) -> Iterator[ast.AST]:
    """What a change in place names only for that it is changed."""
    match change:
        case ast.AugAssign(target=target):
            yield target
        case ast.Call(func=ast.Attribute(value=receiver)):
            yield receiver


def _read_by(facts: FunctionFacts, nodes: Iterable[ast.AST], known: set[str]) -> Iterator[ast.expr]:
    """The names and attributes whose memory code reads, through the names of what was computed before."""
    for node in (n for start in nodes for n in nodes_in(start)):
        if not isinstance(node, (ast.Name, ast.Attribute)) or not isinstance(node.ctx, ast.Load):
            continue
        above = facts.parent(node)
        if isinstance(facts.value(node), (Static, Scalar)) and isinstance(node, ast.Attribute):
            continue
        if isinstance(above, ast.Attribute) and isinstance(facts.value(above), Static):
            continue
        yield node
        if isinstance(node, ast.Name) and node.id not in known:
            known.add(node.id)
            yield from _read_by(facts, (b.value for b in bindings(facts).get(node.id, ()) if b.value), known)


def is_new(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is a value a tensor that nothing else holds, and whose value its own backward does not need?"""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _RESULT_UNUSED) and is_tensor(facts, node)
    return makes_tensor(facts, node)


def bound_to(facts: FunctionFacts, name: str) -> list[ast.expr]:
    """What a name is bound to; itself where that is not a plain assignment."""
    found: list[ast.expr] = []
    for node in nodes_in(facts.function):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            above = facts.parent(node)
            if isinstance(above, ast.AugAssign):
                continue
            found.append(above.value if isinstance(above, ast.Assign) and above.targets == [node] else node)
    return found


def _captured(facts: FunctionFacts, name: str) -> bool:
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return any(
        isinstance(n, inner) and n is not facts.function and any(_is(m, name) for m in nodes_in(n))
        for n in nodes_in(facts.function)
    )


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def is_expanded(node: ast.expr | None) -> bool:
    """Has a tensor dimensions in which it does not move: strides that hardly another one has?"""
    function = node.func if isinstance(node, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in ("expand", "expand_as", "broadcast_to")


@answers("memory")
def laid_otherwise(facts: FunctionFacts, node: ast.expr | None, than: ast.expr | None) -> bool:
    """Does a value have strides that another one hardly has: is it expanded, or a part of a tensor that leaves some of
    the last dimension out, as `x[:, t]` does, where the other one is new memory and not made of that tensor?
    """
    if is_expanded(node):
        return True
    if node is None or than is None or not _is_strided(node) or not shares(facts, than).fresh:
        return False
    root = node
    while isinstance(root, (ast.Subscript, ast.Attribute)):
        root = root.value
    return isinstance(root, ast.Name) and not any(_is(n, root.id) for n in nodes_in(than))


def _is_strided(node: ast.expr) -> bool:
    match node:
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Slice(lower=None, upper=None, step=None), *_, last])):
            return not (isinstance(last, ast.Slice) and not (last.lower or last.upper or last.step))
        case ast.Subscript(slice=ast.Tuple(elts=[ast.Constant(value=types.EllipsisType()), *_, last])):
            return not isinstance(last, ast.Slice) or bool(last.lower or last.upper or last.step)
    return False


@answers("memory")
def laid_apart(facts: FunctionFacts, one: ast.expr | None, other: ast.expr | None) -> bool:
    """Do two values look as if they lay in memory in different orders: a part of a tensor, and one of its own?"""
    if one is None or other is None:
        return False
    layouts = layout(facts, one), layout(facts, other)
    found = shares(facts, one), shares(facts, other)
    apart = None not in layouts and layouts[0] != layouts[1]
    return apart or (any(s.views and not s.same for s in found) and any(s.fresh for s in found))
