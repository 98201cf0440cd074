"""Comparisons that differ from the original's where both sides are equal alone: runs seldom come there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from graphmend.model.gates.text import Function

_METHODS = {"lt": ast.Lt, "less": ast.Lt, "le": ast.LtE, "less_equal": ast.LtE}
_METHODS |= {"gt": ast.Gt, "greater": ast.Gt, "ge": ast.GtE, "greater_equal": ast.GtE}
"""Functions and methods of torch's that are comparisons."""


class Order(NamedTuple):
    """`less < more`, or `less <= more` where equal sides count as well; both as text."""

    less: str
    more: str
    equal: bool

    @property
    def opposite(self) -> Order:
        return Order(self.more, self.less, not self.equal)

    def __str__(self) -> str:
        return f"{self.less} {'<=' if self.equal else '<'} {self.more}"


def moved(function: Function, original: Function) -> tuple[Order, Order] | None:
    """A comparison of a replacement, and that of the original which it is but for equal sides; None if there is none.

    `a >= b` for `not a < b` is no such one.
    """
    known = set(_orders(original))
    for order in _orders(function):
        near = order._replace(equal=not order.equal)
        if near in known and order not in known and order.opposite not in known:
            return order, near
    return None


def _orders(function: Function) -> Iterator[Order]:
    for node in ast.walk(function):
        match node:
            case ast.Compare(left=left, ops=operators, comparators=others):
                sides = [left, *others]
                for operator, one, other in zip(operators, sides, others, strict=False):
                    yield from _order(type(operator), one, other)
            case ast.Call(func=ast.Attribute(attr=attr)) if attr in _METHODS:
                given = _sides(node)
                if len(given) == 2:
                    yield from _order(_METHODS[attr], *given)


def _sides(call: ast.Call) -> list[ast.expr]:
    """What a function or method of torch compares."""
    assert isinstance(call.func, ast.Attribute)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    given = [*call.args, *(named[name] for name in ("input", "other") if name in named)]
    return [call.func.value, *given] if len(given) == 1 else given


def _order(operator: type[ast.cmpop], one: ast.expr, other: ast.expr) -> Iterator[Order]:
    a, b = ast.unparse(_number(one)), ast.unparse(_number(other))
    if operator in (ast.Lt, ast.LtE):
        yield Order(a, b, operator is ast.LtE)
    elif operator in (ast.Gt, ast.GtE):
        yield Order(b, a, operator is ast.GtE)


def _number(node: ast.expr) -> ast.expr:
    """What an expression is the value of: `x.max()` of `float(x.max().item())`."""
    while True:
        match node:
            case ast.Call(func=ast.Attribute(value=value, attr="item" | "detach" | "tolist"), args=[]):
                node = value
            case ast.Call(func=ast.Name(id="int" | "float" | "bool"), args=[value], keywords=[]):
                node = value
            case _:
                return node
