"""What a test says of every element of a tensor: that `mask.all()` holds, that `(ids == 0).any()` does not."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.qualified_names import called, constant, is_tensor
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.neutral.binding import Binding, binding, key
from graphmend.transforms.legality.neutral.elements import (
    COMPARE,
    COMPARISONS,
    NAMED,
    OPPOSITE,
    Element,
    is_bool,
    is_zero,
    keeps_all,
    parts,
    reduced,
    size_of,
    to_bool,
    unpacked,
)
from graphmend.transforms.legality.outside.bound_anew import bound_anew
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class Told:
    """What is known of all elements of tensors of one function, as tests say it."""

    def __init__(self, facts: FunctionFacts, judged: Collection[ast.AST] = ()) -> None:
        """Changes in place among the nodes `judged` are those that are asked about."""
        self.facts = facts
        self._judged = judged
        self.named: dict[Binding, Element] = {}
        """What names stand for, each by its binding."""
        self.known: dict[str, Element] = {}
        """What expressions give, each by its key."""

    @answers("domain")
    def learn(self, test: ast.expr, holds: bool) -> None:
        """Takes a test for true, or for false."""
        facts = self.facts
        match test:
            case ast.Name(ctx=ast.Load()) if (value := binding(facts, test).value) is not None:
                self.learn(value, holds)
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                self.learn(operand, not holds)
            case ast.BoolOp(op=op, values=values):
                for value in values if holds == isinstance(op, ast.And) else ():
                    self.learn(value, holds)
            case ast.Call(func=ast.Attribute(value=inner, attr="item"), args=[]) if not test.keywords:
                self.learn(inner, holds)
            case ast.Call(args=[inner]) if called(facts, test, "builtins.bool", "torch.logical_not"):
                self.learn(inner, holds if called(facts, test, "builtins.bool") else not holds)
            case ast.Call() if (found := reduced(facts, test, "all")) is not None and holds:
                self._every(found, True)
            case ast.Call() if (found := reduced(facts, test, "any")) is not None and not holds:
                self._every(found, False)
            case ast.Call() if not holds and (found := self._counted(test)) is not None:
                self._every(found, False)
            case ast.Compare(left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[right]):
                if holds == isinstance(op, ast.NotIn) and constant(left) in (0, False) and is_tensor(facts, right):
                    self._every(right, True)
                elif holds == isinstance(op, ast.NotIn) and constant(left) is True and is_bool(facts, right):
                    self._every(right, False)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                sign = COMPARISONS[type(op)]
                self._number(self._value(left), sign if holds else OPPOSITE[sign], unpacked(right))

    def _number(self, left: ast.expr, sign: str, right: ast.expr) -> None:
        """What a comparison of a number that is taken over all elements says of these."""
        facts, number = self.facts, constant(right)
        of = {how: reduced(facts, left, how) for how in ("min", "amin", "max", "amax")}
        counted = self._counted(left)
        least, most = of["min"] or of["amin"], of["max"] or of["amax"]
        if counted is not None:
            if (sign, number) in (("eq", 0), ("le", 0), ("lt", 1)):
                self._every(counted, False)
            elif sign in ("eq", "ge") and size_of(facts, right) == key(facts, counted):
                self._every(counted, True)
        elif least is not None and isinstance(number, (bool, int, float)):
            if (sign, number) in (("gt", 0), ("ne", 0), ("eq", 1), ("ge", 1)) and is_bool(facts, least):
                self._every(least, True)
            elif (sign == "gt" and number >= 0) or (sign in ("ge", "eq") and number > 0):
                self._set(least, "nonzero")
        elif most is not None and is_bool(facts, most) and (sign, number) in (("eq", 0), ("le", 0), ("lt", 1)):
            self._every(most, False)

    def _value(self, node: ast.expr) -> ast.expr:
        """What is compared, by what a name of it is bound to."""
        node = unpacked(node)
        bound = binding(self.facts, node).value if isinstance(node, ast.Name) else None
        return self._value(bound) if bound is not None else node

    def _counted(self, node: ast.expr) -> ast.expr | None:
        """The tensor whose elements other than zero are counted."""
        if (counted := reduced(self.facts, node, "count_nonzero")) is not None:
            return counted
        added = reduced(self.facts, node, "sum")
        return added if added is not None and is_bool(self.facts, added) else None

    @answers("domain")
    def counts(self, node: ast.expr, mask: ast.expr) -> bool:
        """Is it the number of elements that a mask has which are true?"""
        counted = self._counted(self._value(node))
        if counted is None or key(self.facts, counted) != key(self.facts, mask):
            return False
        same = isinstance(counted, ast.Name) and isinstance(mask, ast.Name) and counted.id == mask.id
        return same or self.settled(counted)

    @answers("domain")
    def is_empty(self, mask: ast.expr) -> bool:
        """Is no element of a mask true?"""
        if isinstance(mask, ast.Name):
            return is_zero(self.named.get(binding(self.facts, mask)))
        return is_zero(self.known.get(key(self.facts, mask)))

    def _every(self, node: ast.expr, truth: bool) -> None:
        """Every element of a tensor is true, or every one is not."""
        facts = self.facts
        if isinstance(node, ast.Name) and (value := binding(facts, node).value) is not None:
            if not self.steady(node):
                return
            self._every(value, truth)
        self._set(node, truth if is_bool(facts, node) else "nonzero" if truth else "zero")
        match node:
            case ast.UnaryOp(op=ast.Invert(), operand=operand) if is_bool(facts, operand):
                self._every(operand, not truth)
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() as op, right=right):
                if truth == isinstance(op, ast.BitAnd) and is_bool(facts, left) and is_bool(facts, right):
                    self._every(left, truth)
                    self._every(right, truth)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                self._elements(left, COMPARISONS[type(op)], right, truth)
            case ast.Call():
                receiver, arguments, name = parts(facts, node)
                name = NAMED.get(name, name)
                if name == "logical_not" and receiver is not None:
                    self._every(receiver, not truth)
                elif name in COMPARE and receiver is not None and len(arguments) == 1:
                    self._elements(receiver, name, arguments[0], truth)
                elif receiver is not None and (keeps_all(facts, node) or to_bool(facts, node)):
                    self._every(receiver, truth)

    def _elements(self, left: ast.expr, sign: str, right: ast.expr, truth: bool) -> None:
        """A comparison holds for every element, or for none (no NaN among them is told apart)."""
        number = constant(right)
        if not isinstance(number, (bool, int, float)) or not is_tensor(self.facts, left):
            return
        if not truth:
            if sign not in ("eq", "ne") and not kinds(self.facts, left) <= {"bool", "uint8", "int"}:
                return
            sign = OPPOSITE[sign]
        if sign == "eq":
            self._every(left, bool(number)) if is_bool(self.facts, left) else self._set(left, number)
        elif (sign, number) == ("ne", 0) or (sign == "gt" and number >= 0) or (sign == "ge" and number > 0):
            self._every(left, True)
        elif (sign, number) in (("ne", 1), ("lt", 1)) and is_bool(self.facts, left):
            self._every(left, False)

    def _set(self, node: ast.expr, element: Element) -> None:
        if isinstance(node, ast.Name):
            if self.steady(node) and self._lasts(node):
                self.named[binding(self.facts, node)] = element
        elif self.settled(node):
            self.known[key(self.facts, node)] = element

    def settled(self, node: ast.expr) -> bool:
        """Does an expression, with what its names are bound to, give the same wherever it is evaluated?"""
        return all(map(self._is_settled, nodes_in(node)))

    def _is_settled(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(ctx=ast.Load()):
                bound = binding(self.facts, node).value
                return self.steady(node) and (self._lasts(node) if bound is None else self.settled(bound))
            case ast.Attribute():
                return self.steady(node) and self._lasts(node)
            case ast.Call():
                return not effects(self.facts, node)
        return True

    def _lasts(self, node: ast.expr) -> bool:
        """Is what is read from outside never bound anew while the function runs?"""
        return bound_anew(self.facts, node, self.facts.function.body) is None

    @answers("memory")
    def steady(self, node: ast.expr) -> bool:
        """Is a tensor that a name or an attribute stands for never changed in place?"""
        own = shares(self.facts, node).paths
        changed = (target for change, target in changes(self.facts) if change not in self._judged)
        return not any(own & shares(self.facts, target).paths for target in changed)
