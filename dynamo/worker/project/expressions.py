"""Values of expressions in a project's code, without running it: arithmetic, containers, attributes, subscripts.

Sizes are made smaller where they are written: every integer literal goes through `resize`, so what is computed from
one stays consistent with it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from .values import UNKNOWN, Class, External, Function, Instance, Module, Scope, in_unknown_folder, known

MOST_ITEMS = 64
"""Rounds of a loop, items of a comprehension."""
MOST_STEPS = 60_000
LARGEST = 1 << 24
"""Elements of a list or tensor, and the largest number."""

_OPERATORS: dict[type, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.MatMult: operator.matmul,
    ast.BitOr: operator.or_, ast.BitAnd: operator.and_, ast.BitXor: operator.xor, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt,
    ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b, ast.Not: operator.not_, ast.USub: operator.neg,
    ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip


MANY = 16
"""Entries of a table whose keys cannot be told: of the words of a text, of the labels of a data set."""


def put(table: dict[Any, Any], key: Any, value: Any) -> None:
    """An entry of a table; where its key cannot be told, several, numbered where they are given numbers."""
    if key is not UNKNOWN:
        table[key] = value
        return
    numbered = value is UNKNOWN or type(value) is int
    table.update({f"?{n}": n if numbered else value for n in range(len(table), MANY)})


class TooLong(Exception):
    """The project's code takes more steps than it is worth."""


class Expressions:
    """Evaluates expressions; what a call and an attribute of an object mean is for the class below."""

    def __init__(self, resize: Callable[[int], int]) -> None:
        self.resize = resize
        self.steps = MOST_STEPS

    def call(self, node: ast.Call, scope: Scope) -> Any:
        raise NotImplementedError

    def attribute(self, value: Any, name: str) -> Any:
        raise NotImplementedError

    def items(self, value: Any) -> list[Any]:
        """The first items of what is looped over; one unknown item where it cannot be told."""
        raise NotImplementedError

    def bind(self, target: ast.expr, value: Any, scope: Scope) -> None:
        raise NotImplementedError

    def looped(self, target: ast.expr, over: ast.expr, scope: Scope) -> None:
        """A name is bound to what is unknown of something that is looped over."""
        raise NotImplementedError

    def value(self, node: ast.expr | None, scope: Scope) -> Any:
        if node is None:
            return None
        self.steps -= 1
        if self.steps < 0:
            raise TooLong
        read = getattr(self, "_" + type(node).__name__.lower(), None)
        if read is None:
            return UNKNOWN
        try:
            return read(node, scope)
        except (TooLong, RecursionError):
            raise
        except Exception:  # what fails here need not fail in the program: too little of it is known
            return UNKNOWN

    def _constant(self, node: ast.Constant, scope: Scope) -> Any:
        return self.resize(node.value) if type(node.value) is int else node.value

    def _name(self, node: ast.Name, scope: Scope) -> Any:
        return scope.get(node.id)

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Any:
        value = self.value(node.value, scope)
        self.bind(node.target, value, scope)
        return value

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self.attribute(self.value(node.value, scope), node.attr)

    def _call(self, node: ast.Call, scope: Scope) -> Any:
        return self.call(node, scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Any:
        return Function(node, scope)

    def _await(self, node: ast.Await, scope: Scope) -> Any:
        return self.value(node.value, scope)

    def _starred(self, node: ast.Starred, scope: Scope) -> Any:
        return self.value(node.value, scope)

    # containers

    def _each(self, nodes: list[ast.expr], scope: Scope) -> Iterator[Any]:
        for node in nodes:
            if isinstance(node, ast.Starred):
                yield from self.items(self.value(node.value, scope))
            else:
                yield self.value(node, scope)

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Any:
        return tuple(self._each(node.elts, scope))

    def _list(self, node: ast.List, scope: Scope) -> Any:
        return list(self._each(node.elts, scope))

    def _set(self, node: ast.Set, scope: Scope) -> Any:
        return set(self._each(node.elts, scope))

    def _dict(self, node: ast.Dict, scope: Scope) -> Any:
        found: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values):  # noqa: B905
            if key is not None:
                found[self.value(key, scope)] = self.value(value, scope)
            else:
                inner = self.value(value, scope)
                found.update(inner if isinstance(inner, dict) else {})
        return found

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        parts = [self.value(v.value if isinstance(v, ast.FormattedValue) else v, scope) for v in node.values]
        return "".join(map(str, parts)) if known(parts) else in_unknown_folder(parts)

    def _listcomp(self, node: Any, scope: Scope) -> Any:
        inner = Scope(scope.path, scope)
        return [self.value(node.elt, inner) for _ in self._rounds(node.generators, inner)]

    _generatorexp = _listcomp

    def _setcomp(self, node: Any, scope: Scope) -> Any:
        return set(self._listcomp(node, scope))

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Any:
        inner = Scope(scope.path, scope)
        found: dict[Any, Any] = {}
        for _ in self._rounds(node.generators, inner):
            put(found, self.value(node.key, inner), self.value(node.value, inner))
        return found

    def _rounds(self, generators: list[ast.comprehension], scope: Scope) -> Iterator[None]:
        if not generators:
            yield
            return
        first, *rest = generators
        for item in self.items(self.value(first.iter, scope)):
            self.bind(first.target, item, scope)
            if not known(item):
                self.looped(first.target, first.iter, scope)
            if all(self.value(test, scope) is not False for test in first.ifs):
                yield from self._rounds(rest, scope)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        value = self.value(node.value, scope)
        if isinstance(value, Module):  # its `__dict__`
            index = self.value(node.slice, scope)
            return value.scope.get(index) if isinstance(index, str) else UNKNOWN
        if value is UNKNOWN or isinstance(value, (External, Class, Function)):
            return value if isinstance(value, (External, Class)) else UNKNOWN  # `list[int]`
        if isinstance(value, Instance):
            return self.item(value, self.value(node.slice, scope))
        index = self.value(node.slice, scope)
        if not known(index) and isinstance(value, dict):
            return next(iter(value.values()), UNKNOWN)  # any row of a table of sizes will do
        return value[index] if known(index) else UNKNOWN

    def item(self, value: Instance, index: Any) -> Any:
        """What a subscript of a project's object gives."""
        raise NotImplementedError

    def _slice(self, node: ast.Slice, scope: Scope) -> Any:
        parts = [self.value(part, scope) for part in (node.lower, node.upper, node.step)]
        return slice(*parts) if known(parts) else UNKNOWN

    # operators

    def _binop(self, node: ast.BinOp, scope: Scope) -> Any:
        return self.operated(type(node.op), self.value(node.left, scope), self.value(node.right, scope))

    def operated(self, kind: type, left: Any, right: Any) -> Any:
        if left is UNKNOWN or right is UNKNOWN:
            return in_unknown_folder([left, right]) if kind in (ast.Div, ast.Add) else UNKNOWN
        numbers = [n for n in (left, right) if type(n) is int]
        if kind in (ast.Pow, ast.LShift) and any(abs(n) > MOST_ITEMS for n in numbers[-1:]):
            return UNKNOWN
        if (
            kind is ast.Mult
            and any(isinstance(s, (list, tuple, str)) for s in (left, right))
            and max(numbers) > LARGEST
        ):
            return UNKNOWN
        return _OPERATORS[kind](left, right)

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return -node.operand.value  # type: ignore[operator]  # what is negative is no size
        value = self.value(node.operand, scope)
        return UNKNOWN if value is UNKNOWN else _OPERATORS[type(node.op)](value)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        value: Any = UNKNOWN
        for part in node.values:
            value = self.value(part, scope)
            if value is UNKNOWN or isinstance(value, (External, Function, Class, Instance)):
                continue
            if bool(value) is isinstance(node.op, ast.Or):
                return value
        return value

    def _compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.value(node.left, scope)
        for op, other in zip(node.ops, node.comparators):  # noqa: B905
            right = self.value(other, scope)
            if not known(left) or not known(right):
                return UNKNOWN
            found = _OPERATORS[type(op)](left, right)
            if len(node.ops) == 1:  # of tensors and arrays: element by element
                return found
            if not found:
                return False
            left = right
        return True

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        test = self.value(node.test, scope)
        if test is not UNKNOWN:
            return self.value(node.body if test else node.orelse, scope)
        found = [self.value(node.body, scope), self.value(node.orelse, scope)]
        return next((value for value in found if value is not UNKNOWN), UNKNOWN)
