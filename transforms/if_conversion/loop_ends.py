"""When a loop ends for certain, whatever its tensors hold, and what it leaves as it was: what it runs over, and the
names that no iteration changed.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.external import ExternalInstance
from graphmend.analysis.lattice.values import Container, Static, Tensor, options
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bound_before
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.liveness import writes
from graphmend.transforms.code.qualified_names import called, constant, is_tensor, number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.if_conversion.selection import NotSelectableError
from graphmend.transforms.legality.gradients.sides import lost
from graphmend.transforms.legality.memory import changed_in_place, seen_elsewhere
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.outside.identity import identified
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: they make an iterator of their own, which nothing else sees
_THROUGH = frozenset(f"builtins.{name}" for name in ("enumerate", "zip", "reversed", "iter", "sorted"))
_MODULES = frozenset(f"torch.nn.{name}" for name in ("ModuleList", "ModuleDict", "Sequential", "ParameterList"))

_RISING = (ast.Lt, ast.LtE)
_FALLING = (ast.Gt, ast.GtE)


def run_through(facts: FunctionFacts, node: ast.expr) -> list[Difference]:
    """What differs as a loop runs over a value where it did not: a tensor without dimensions cannot be run over. Raises
    where the value may be used up.
    """
    if not runs_again(facts, node):
        raise NotSelectableError(f"a loop over `{shortened(node)}` may use it up")
    through = node.args if isinstance(node, ast.Call) and called(facts, node, *_THROUGH) else [node]
    values = [facts.value(each) for each in through]
    if not any(isinstance(o, Tensor) and not o.rank for value in values for o in options(value)):
        return []
    says = f"running over `{shortened(node)}` is evaluated on both sides and raises where it has no dimensions"
    return [Difference("exception", says)]


def runs_again(facts: FunctionFacts, node: ast.expr) -> bool:
    """Does a loop over a value leave it as it was, for certain?"""
    if isinstance(node, ast.Call):
        name = qualified(facts, node.func) or ""
        if name in ("builtins.range", "builtins.len"):
            return True
        if name in _THROUGH:
            return all(runs_again(facts, a) for a in node.args)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("items", "keys", "values", "children"):
            return not node.args and _is_kept(facts, node.func.value)
        made = facts.value(node)
        if name.startswith("torch.nn.") and name.rpartition(".")[2] in known.HOLDS:
            return True  # a new iterator for each call
        return isinstance(made, Container) and made.kind in ("list", "tuple")  # no iterator
    if isinstance(node, ast.GeneratorExp):
        return False
    return isinstance(node, (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp)) or _is_kept(facts, node)


def _is_kept(facts: FunctionFacts, node: ast.expr) -> bool:
    value = facts.value(node)
    if isinstance(value, ExternalInstance):
        return value.cls in _MODULES
    return (
        (isinstance(value, Container) and value.kind not in ("generator", "iterator"))
        or isinstance(value, Tensor)
        or (isinstance(value, Static) and value.type in ("str", "range", "tuple", "list", "Size"))
    )


@answers("memory")
def copied(facts: FunctionFacts, loop: ast.For | ast.While, name: str, where: str) -> list[Difference]:
    """What differs as a loop gives a copy of the tensor that a name was bound to before it, where that is the one
    behind it, too; `where` says when. Refuses where somebody asks which tensor it is, or changes it in place.
    """
    node, found = ast.Name(name, ast.Load()), []
    if identified(facts, name):
        raise NotSelectableError(f"which tensor `{name}` is asked for, and it would be a copy")
    if seen_elsewhere(facts, node, rebound=name):
        if changed_in_place(facts, name, behind=loop):
            raise NotSelectableError(f"`{name}` may be another tensor, and is changed in place")
        found.append(Difference("aliasing", f"`{name}` is a copy where {where}"))
    return [*found, *lost(facts, loop, f"`{name}` loses its gradient history where {where}", node)]


class Counter(NamedTuple):
    """A number that ends a `while` loop by itself."""

    name: str
    statement: ast.stmt
    """The statement of the loop's body that counts."""


def counter(facts: FunctionFacts, loop: ast.While) -> Counter | None:
    """The number by which a `while` loop ends for certain: it is counted by a constant in every iteration, up or down
    to a bound that the loop does not change.
    """
    if any(isinstance(node, ast.Continue) for node in nodes_in(loop)):
        return None  # which may go around the counting
    tests = [(test, False) for test in conjuncts(loop.test)]
    tests += [
        (part, True)
        for statement in loop.body
        if isinstance(statement, ast.If) and isinstance(statement.body[-1], ast.Break)
        for part in disjuncts(statement.test)
    ]
    found = (_counted(facts, loop, test, ends=ends) for test, ends in tests)
    return next((one for one in found if one is not None), None)


def conjuncts(test: ast.expr) -> list[ast.expr]:
    """The parts of a test that all must hold."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in conjuncts(value)]
    return [test]


def disjuncts(test: ast.expr) -> list[ast.expr]:
    """The parts of a test of which one must hold."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return [part for value in test.values for part in disjuncts(value)]
    return [test]


def _counted(facts: FunctionFacts, loop: ast.While, test: ast.expr, *, ends: bool) -> Counter | None:
    """The counter that a comparison is about; `ends` where the loop ends if it holds."""
    match test:
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            pass
        case _:
            return None
    for name, bound, mirrored in ((left, right, False), (right, left, True)):
        if not isinstance(name, ast.Name) or not isinstance(op, (*_RISING, *_FALLING, ast.Eq)):
            continue
        if (statement := _ends_by_itself(facts, loop, name.id, test, ends=ends)) is not None:
            return Counter(name.id, statement)
        if isinstance(op, ast.Eq):
            continue
        if number_type(facts, bound) != "int" or not _stays(facts, loop, bound):
            continue
        up = isinstance(op, _RISING) ^ mirrored ^ ends
        if (statement := _step(facts, loop, name.id, up=up)) is not None:
            return Counter(name.id, statement)
    return None


def _stays(facts: FunctionFacts, loop: ast.While, bound: ast.expr) -> bool:
    """Does a number stay what it is while a loop binds names and attributes, and what it calls only computes?"""
    match bound:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name not in writes(*loop.body)
        case ast.Attribute(value=value, attr=attr):
            stored = (n for s in loop.body for n in nodes_in(s) if isinstance(n, ast.Attribute))
            return not any(n.attr == attr and not isinstance(n.ctx, ast.Load) for n in stored) and _stays(
                facts, loop, value
            )
        case ast.BinOp(left=left, right=right):
            return _stays(facts, loop, left) and _stays(facts, loop, right)
    sized = _sized(facts, bound)
    if sized is None:
        return False
    tensor = facts.value(sized)  # of all iterations: of one shape, or of none that is known
    return _stays(facts, loop, sized) or (isinstance(tensor, Tensor) and tensor.shape is not None)


def _sized(facts: FunctionFacts, number: ast.expr) -> ast.expr | None:
    """The tensor whose size a number is."""
    match number:
        case ast.Subscript(value=ast.Attribute(value=of, attr="shape"), slice=index) if constant(index) is not None:
            pass
        case ast.Call(func=ast.Attribute(value=of, attr="numel" | "dim" | "ndimension"), args=[], keywords=[]):
            pass
        case ast.Call(func=ast.Attribute(value=of, attr="size"), args=[index], keywords=[]) if (
            constant(index) is not None
        ):
            pass
        case ast.Call(args=[of], keywords=[]) if called(facts, number, "builtins.len"):
            pass
        case _:
            return None
    return of if is_tensor(facts, of) else None


_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip
#: iterations of a loop that is followed number by number; TorchDynamo would unroll no more of them
_MOST = 1000


def _ends_by_itself(
    facts: FunctionFacts, loop: ast.While, name: str, test: ast.Compare, *, ends: bool
) -> ast.stmt | None:
    """The statement that counts a number from a constant on, where counting so ends the loop after some iterations."""
    binding = [s for s in loop.body if name in writes(s)]
    start = constant(before) if (before := bound_before(facts, loop, name)) is not None else None
    if len(binding) != 1 or not isinstance(start, (int, float)) or name in writes(loop.test):
        return None
    match binding[0]:
        case ast.AugAssign(target=ast.Name(), op=op, value=value):
            step = constant(value)
        case ast.Assign(targets=[ast.Name()], value=ast.BinOp(left=ast.Name(id=left), op=op, right=value)) if (
            left == name
        ):
            step = constant(value)
        case _:
            return None
    compared = _COMPARES[type(test.ops[0])]
    first = isinstance(test.left, ast.Name) and test.left.id == name
    bound = constant(test.comparators[0] if first else test.left)
    counts = _OPERATORS.get(type(op))
    if not isinstance(step, (int, float)) or not isinstance(bound, (int, float)) or counts is None:
        return None
    now: float = start
    for _ in range(_MOST):
        if compared(*((now, bound) if first else (bound, now))) is ends:
            return binding[0]
        try:
            now = counts(now, step)
        except ArithmeticError:
            return None
    return None


_COMPARES: dict[type[ast.cmpop], Callable[[float, float], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
}  # fmt: skip


def _step(facts: FunctionFacts, loop: ast.While, name: str, *, up: bool) -> ast.stmt | None:
    """The only statement in a loop that binds a name, where it counts it in every iteration."""
    before = facts.before(loop).get(name)
    if not isinstance(before, Static) or before.type != "int":
        return None
    binding = [s for s in loop.body if name in writes(s)]
    if len(binding) != 1 or name in writes(loop.test):
        return None
    step: object = None
    match binding[0]:
        case ast.AugAssign(target=ast.Name(), op=ast.Add() | ast.Sub() as op, value=value):
            step = constant(value)
        case ast.Assign(
            targets=[ast.Name()],
            value=ast.BinOp(left=ast.Name(id=left), op=ast.Add() | ast.Sub() as op, right=value),
        ) if left == name:
            step = constant(value)
    if not isinstance(step, int) or isinstance(step, bool) or step == 0:
        return None
    rises = (step > 0) == isinstance(op, ast.Add)
    return binding[0] if rises == up else None
