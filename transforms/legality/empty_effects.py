"""Decides whether a block has no effect when an index tensor is empty.

`x.index_add_(0, rows, ...)` and `x[rows] = ...` then do nothing, whatever else is computed for them, as long as nothing
of that is used outside the block; any other effect makes the answer no.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import UNKNOWN, Container, Tensor, dtype_kind, options, tensor_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import alive, reads, writes
from graphmend.transforms.code.positions import begins_line, replaceable
from graphmend.transforms.code.qualified_names import called, constant, method, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.effects import effects, is_layer
from graphmend.transforms.legality.writes.unchanged import still_made_of
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class HasEffectError(Exception):
    """The block may have an effect; the message is the sentence to refuse with."""


class EmptyEffect:
    """Checks that statements have no effect when the index tensors in `empty` are; else raises `HasEffectError`."""

    def __init__(
        self, facts: FunctionFacts, empty: Iterable[str] = (), bind: Callable[[ast.expr, ast.expr], bool] | None = None
    ) -> None:
        self._facts = facts
        self.empty = {*empty}
        """Names of empty index tensors; `bind` tells whether an assignment adds one."""
        self._bind = bind
        self.skips: list[ast.stmt] = []
        """Statements that leave the block because an index is empty: they can be removed."""
        self._of_nothing: set[str] = set()
        self.unknown: dict[str, None] = {}
        """Code that is called, and is not known."""

    @answers("effects")
    def take(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            self._check_total(statement)
            if any(isinstance(n, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)) for n in nodes_in(statement)):
                raise HasEffectError("the body does more than compute")
            match statement:
                case ast.Pass() | ast.Continue() | ast.Expr(value=ast.Constant()) | ast.AugAssign(target=ast.Name()):
                    continue
                case ast.Assign(targets=[ast.Name() | ast.Tuple() as target], value=value):
                    names = writes(target)
                    self.empty -= names
                    if self._bind is not None and self._bind(target, value):
                        self.empty |= names
                case ast.If(test=test, body=[ast.Continue()], orelse=[]) if asks_if_empty(test, self.empty):
                    self._skip(statement)
                case ast.If(test=test, body=body, orelse=orelse) if tensor_in(self._facts.value(test)) is None:
                    self.take(body)
                    self.take(orelse)
                case ast.Expr(value=ast.Call(func=ast.Attribute(attr="index_add_"), args=[_, ast.Name(id=rows), *_])):
                    self._stored(rows)
                case ast.AugAssign(target=target, op=ast.Add() | ast.Sub(), value=count) if counts(
                    count, self.empty
                ) and is_counter(self._facts, target):
                    continue
                case (
                    ast.Assign(targets=[ast.Subscript(value=ast.Name(id=of), slice=where)])
                    | ast.AugAssign(target=ast.Subscript(value=ast.Name(id=of), slice=where))
                ):
                    if any(isinstance(o, Container) for o in options(self._facts.before(statement).get(of, UNKNOWN))):
                        raise HasEffectError(f"`{of}` may take a mask for a place, or for a key")
                    first = where.elts[0] if isinstance(where, ast.Tuple) and where.elts else where
                    self._stored(first.id if isinstance(first, ast.Name) else "")
                case _:
                    raise HasEffectError(f"`{ast.unparse(statement).splitlines()[0]}` may do something all the same")

    def _check_total(self, statement: ast.stmt) -> None:
        """Refuses what raises for nothing; collects the calls of code that may do more than compute."""
        for node in nodes_in(statement):
            if isinstance(node, ast.Call):
                last = (qualified(self._facts, node.func) or "").rpartition(".")[2]
                attribute = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if {last, attribute} & _RAISE_FOR_NOTHING:
                    if self._is_nothing(node):
                        raise HasEffectError(f"`{ast.unparse(node)}` raises for nothing")
                    if attribute not in ("item", "tolist"):
                        self.unknown[ast.unparse(node.func)] = None
                if not is_layer(self._facts, node.func) and effects(self._facts, node) and not _stores(node):
                    self.unknown[ast.unparse(node.func)] = None
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                if isinstance(constant(node.slice), int) and self._is_nothing(node.value):
                    raise HasEffectError(f"`{ast.unparse(node)}` raises for nothing")
            elif isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod)):
                tensors = [tensor_in(self._facts.value(o)) for o in (node.left, node.right)]
                if not any(tensors) and reads(node.right) & (self._of_nothing | self.empty):
                    raise HasEffectError(f"`{ast.unparse(node.right)}` may be zero where there is nothing")
            if isinstance(node, ast.Attribute) and (own := self._own_effects(node)):
                raise HasEffectError(own[0])
        if isinstance(statement, ast.Assign) and reads(statement.value) & (self._of_nothing | self.empty):
            self._of_nothing |= writes(*statement.targets)

    def _own_effects(self, node: ast.Attribute) -> list[str]:
        """What reading an attribute does, apart from evaluating that whose attribute it is."""
        inner = effects(self._facts, node.value)
        return [effect for effect in effects(self._facts, node) if effect not in inner]

    def _is_nothing(self, node: ast.expr) -> bool:
        """May a value be what positions pick, of which there are none?"""
        shape = isinstance(node, ast.Attribute) and node.attr == "shape"
        return not shape and bool(reads(node) & (self._of_nothing | self.empty))

    def differences(self) -> list[Difference]:
        """What the code that is called on nothing may do, where it is not known."""
        found: list[Difference] = []
        for name in self.unknown:
            found.append(Difference("state", f"`{name}` is called on nothing, and may change or print something"))
            found.append(Difference("exception", f"`{name}` is called on nothing, and may raise"))
        return found

    @answers("order")
    def check_ends(self, block: ast.stmt, statements: list[ast.stmt], also: Iterable[str] = ()) -> None:
        """Nothing that the statements bind may be known before the block, or read behind it."""
        for name in sorted(writes(*statements) | {*also}):
            if alive(self._facts, name, block) or name in self._facts.before(block):
                raise HasEffectError(f"`{name}` lives on behind the block, or comes from before it")

    def _skip(self, statement: ast.stmt) -> None:
        if not (replaceable(self._facts, [statement]) and begins_line(self._facts.source, statement)):
            raise HasEffectError("a statement shares its line with another one")
        self.skips.append(statement)

    def _stored(self, rows: str) -> None:
        if rows not in self.empty:
            raise HasEffectError("the body stores at positions that come from elsewhere")


#: they raise, or warn, for a tensor without elements
_RAISE_FOR_NOTHING = frozenset(
    "max min amax amin aminmax argmax argmin mode quantile kthvalue topk item tolist std var std_mean var_mean "
    "one_hot median nanmedian nanquantile normalize interpolate".split()
)


def _stores(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "index_add_"


def index_source(facts: FunctionFacts, value: ast.expr) -> ast.expr | None:
    """`mask` in `torch.where(mask)`, `mask.nonzero(...)` and `torch.nonzero(mask, ...)`."""
    match value:
        case ast.Call(args=[mask], keywords=[]) if called(facts, value, "torch.where"):
            return mask
        case ast.Call(args=[mask]) if called(facts, value, "torch.nonzero"):
            return mask
        case ast.Call(func=ast.Attribute(value=mask)) if method(facts, value, "nonzero"):
            return mask
    return None


def asks_if_empty(test: ast.expr, names: set[str]) -> bool:
    """`rows.numel() == 0` and its like, for one of `names`."""
    match test:
        case ast.Compare(left=count, ops=[ast.Eq()], comparators=[zero]) if constant(zero) == 0:
            return counts(count, names)
    return False


def asks_if_any(test: ast.expr, names: set[str]) -> bool:
    """`rows.numel() > 0` and its like, for one of `names`."""
    match test:
        case ast.Compare(left=count, ops=[ast.Gt() | ast.NotEq()], comparators=[zero]) if constant(zero) == 0:
            return counts(count, names)
    return False


def asks_if_none(facts: FunctionFacts, test: ast.expr) -> str | None:
    """The mask of `not mask.any()`, `mask.sum() == 0` and their like."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=found):
            return _quantified(facts, found, "any", "sum")
        case ast.Compare(left=found, ops=[ast.Eq()], comparators=[zero]) if constant(zero) == 0:
            return _quantified(facts, found, "sum", "count_nonzero")
    return None


def asks_if_some(facts: FunctionFacts, test: ast.expr) -> str | None:
    """The mask of `mask.any()`, `mask.sum() > 0` and their like."""
    match test:
        case ast.Compare(left=found, ops=[ast.Gt() | ast.NotEq()], comparators=[zero]) if constant(zero) == 0:
            return _quantified(facts, found, "sum", "count_nonzero")
    return _quantified(facts, test, "any", "sum")


def _quantified(facts: FunctionFacts, found: ast.expr, *names: str) -> str | None:
    """The mask that one of some reductions is about, and its number; the answer may have a name."""
    if isinstance(found, ast.Name) and (made := still_made_of(facts, found)) is not None:
        return _quantified(facts, made, *names)
    while isinstance(found, ast.Call) and isinstance(found.func, ast.Attribute) and found.func.attr == "item":
        found = found.func.value
    match found:
        case ast.Call(func=ast.Attribute(value=ast.Name() as mask), args=[], keywords=[]) if method(
            facts, found, *names
        ):
            pass
        case ast.Call(args=[ast.Name() as mask], keywords=[]) if called(facts, found, *(f"torch.{n}" for n in names)):
            pass
        case _:
            return None
    value = facts.value(mask)
    return mask.id if isinstance(value, Tensor) and value.dtype == "bool" else None


def is_counter(facts: FunctionFacts, target: ast.expr) -> bool:
    """Is it a tensor, or an element of one, that numbers are added to? A Python number would be counted in the state
    of the program, and what is traced would depend on it.
    """
    value = facts.value(target.value if isinstance(target, ast.Subscript) else target)
    return isinstance(value, Tensor) and dtype_kind(value.dtype) in ("int", "float")


def counts(count: ast.expr, names: set[str]) -> bool:
    """How many positions there are: `len(rows)`, `rows.numel()`, `rows.shape[0]`, `rows.size(0)`."""
    match count:
        case ast.Call(func=ast.Name(id="len"), args=[ast.Name(id=name)]):
            return name in names
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="numel"), args=[]):
            return name in names
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="size"), args=[zero]):
            return name in names and constant(zero) == 0
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="shape"), slice=zero):
            return name in names and constant(zero) == 0 and not reads(zero)
    return False
