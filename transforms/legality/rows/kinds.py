"""What the expressions of a piece of code are, as to rows: whether each row of a value is computed from the same row of
what the code was given.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, NamedTuple

from graphmend.transforms.legality.operations import flags, rowwise
from graphmend.transforms.legality.operations import names as known

#: `number` and `const` do not depend on the rows; `rows` has one row for each, of at least one dimension, and `line` of
#: one element perhaps; `other` is computed from several rows
Kind = Literal["number", "const", "line", "rows", "other"]

_ORDER: tuple[Kind, ...] = ("other", "rows", "line", "const", "number")


class Does(NamedTuple):
    """What calling a module does, given rows first."""

    pure: bool
    """Does it only compute: nothing written, drawn, printed?"""
    kind: Kind
    """What it gives."""


#: operators that raise for some whole numbers
DIVIDES = (ast.FloorDiv, ast.Mod)
#: functions that do, with those operators
_DIVIDING: dict[str, ast.operator] = {
    "floor_divide": ast.FloorDiv(), "remainder": ast.Mod(), "fmod": ast.Mod(), "pow": ast.Pow(),
}  # fmt: skip
_ROUNDING = frozenset({"div", "divide", "true_divide"})


def divided(call: ast.Call, last: str, *, method: bool) -> tuple[ast.operator, ast.expr, ast.expr] | None:
    """The operator, and its operands, that a function of torch by the name of `last` is a call of; None of others."""
    rounds = last in _ROUNDING and any(k.arg == "rounding_mode" for k in call.keywords)
    operands = [*call.args, *(k.value for k in call.keywords if k.arg in ("other", "exponent"))]
    if method and isinstance(call.func, ast.Attribute):
        operands.insert(0, call.func.value)
    if not (rounds or last in _DIVIDING) or len(operands) < 2:
        return None
    return _DIVIDING.get(last, ast.FloorDiv()), operands[0], operands[1]


UNKNOWN_CALL = Does(False, "other")


def join(*kinds: Kind) -> Kind:
    return next((kind for kind in _ORDER if kind in kinds), "number")


def has_rows(kind: Kind) -> bool:
    return kind in ("line", "rows")


class Kinds(ABC):
    """Finds the kind of each expression, and whether all of them only compute."""

    def __init__(self, *, flat: bool = False) -> None:
        """`flat`: the rows are those of the first dimension, so that others may be counted from there."""
        self.pure, self._flat = True, flat
        self.indexed = False
        """May a tensor be indexed by rows, as those that are not picked are no index out of range?"""
        self.bound: dict[str, Kind] = {}
        """What names were bound to by the statements so far."""
        self._made: set[str] = set()
        """Names of what was computed there, which nobody else sees."""

    def binds(self, statement: ast.stmt) -> bool:
        """Does a statement only bind names, or change what was made here, perhaps on one side of what is known without
        the rows? What the names are bound to is found.
        """
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return True
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.bound[name] = self.kind(value)
                self._made -= {name}
                self._made |= {name} if isinstance(value, ast.BinOp) else set()
                return True
            case ast.AugAssign(target=ast.Name(id=name), value=value) if name in self._made:
                self.bound[name] = join(self.bound[name], self.kind(value))
                return True
            case ast.If(test=test, body=body, orelse=orelse) if self.kind(test) in ("const", "number"):
                before, made = {**self.bound}, {*self._made}
                then = self._all_bind(body)
                taken, self.bound = self.bound, before
                self._made, made = made, self._made
                otherwise = self._all_bind(orelse)
                self._made &= made
                for name, kind in taken.items():
                    self.bound[name] = join(kind, self.bound.get(name, kind))
                return then and otherwise
        return False

    def _all_bind(self, statements: Sequence[ast.stmt]) -> bool:
        return all(self.binds(statement) for statement in statements)

    @abstractmethod
    def leaf(self, node: ast.expr) -> Kind | None:
        """The kind of an expression that is known as a whole."""

    def factor(self, node: ast.expr) -> Kind:
        """The kind of what a product has on its right."""
        return self.kind(node)

    @abstractmethod
    def module(self, function: ast.expr, given: Kind) -> Does | None:
        """What a call of a module does; None where what is called is no module."""

    @abstractmethod
    def qualified(self, function: ast.expr) -> str | None:
        """The name of a function of torch; None for a method of a value."""

    def raises(self, op: ast.operator, left: ast.expr, right: ast.expr) -> bool:
        """Does an operator raise for some values, which may be those of rows that are not picked?"""
        by_number = isinstance(right, ast.Constant) and isinstance(right.value, (int, float)) and bool(right.value)
        return isinstance(op, DIVIDES) and not by_number

    def own(self, call: ast.Call) -> Kind | None:
        """What a call of a function of the program's gives; None where that is not known."""
        return None

    def kind(self, node: ast.expr) -> Kind:
        if (found := self.leaf(node)) is not None:
            return found
        match node:
            case ast.Constant():
                return "number"
            case ast.Attribute(value=value, attr=attr):
                kind = self.kind(value)
                if not has_rows(kind):
                    return kind
                return "const" if attr in ("dtype", "device") else "other"
            case ast.BinOp(left=left, op=op, right=right):
                if isinstance(op, ast.MatMult):
                    return self._contracted(self.kind(left), self.factor(right))
                kind = join(self.kind(left), self.kind(right))
                return "other" if has_rows(kind) and self.raises(op, left, right) else kind
            case ast.UnaryOp(operand=operand):
                return self.kind(operand)
            case ast.BoolOp(values=values):
                return join(*(self.kind(v) for v in values))
            case ast.Compare(left=left, comparators=rights):
                return join(*(self.kind(n) for n in (left, *rights)))
            case ast.Subscript(value=value, slice=index):
                by, kind = self.kind(index), self.kind(value)
                if not has_rows(kind):  # rows that are not picked may be no index
                    return kind if not has_rows(by) else "rows" if self.indexed and kind != "other" else "other"
                return "rows" if rowwise.keeps_rows(index, flat=self._flat) else "other"
            case ast.Call():
                return self._call(node)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                return join("number", *(self.kind(e) for e in elements))
            case ast.Slice(lower=lower, upper=upper, step=step):
                return join("number", *(self.kind(p) for p in (lower, upper, step) if p is not None))
        self.pure = False
        return "other"

    def _contracted(self, left: Kind, right: Kind) -> Kind:
        """A product along the last dimension, which is not that of the rows: they are as many as there happen to be."""
        if has_rows(left):
            return "rows" if right == "const" else "other"
        return join(left, right) if not has_rows(right) else "other"

    def _call(self, node: ast.Call) -> Kind:
        if (own := self.own(node)) is not None:
            return own
        kinds = [self.kind(a) for a in (*node.args, *(k.value for k in node.keywords))]
        if (done := self.module(node.func, kinds[0] if kinds else "other")) is not None:
            self.pure &= done.pure
            if not any(has_rows(k) or k == "other" for k in kinds):
                return "const"
            return done.kind if not any(has_rows(k) or k == "other" for k in kinds[1:]) else "other"
        name = self.qualified(node.func)
        if name == "builtins.isinstance":
            return "const"
        if name is None:
            if not isinstance(node.func, ast.Attribute):
                self.pure = False
                return "other"
            first = self.kind(node.func.value)
            return self._function("torch.Tensor", node.func.attr, node, [first, *kinds], node.args)
        folder, _, last = name.rpartition(".")
        return self._function(folder, last, node, kinds, node.args[1:])

    def _function(
        self, folder: str, last: str, node: ast.Call, kinds: list[Kind], arguments: Sequence[ast.expr]
    ) -> Kind:
        keywords = {k.arg: k.value for k in node.keywords}
        writes = last.endswith("_") or "out" in keywords or None in keywords or last in known.EFFECTFUL
        place = flags.INPLACE.get(last)
        inplace = "inplace" in keywords or (place is not None and folder != "torch.Tensor" and len(node.args) > place)
        if folder not in known.FUNCTIONAL or last in known.RANDOM or writes or inplace or last in flags.MAX_NORM:
            self.pure = False
            return "other"
        kind = join("number", *kinds)
        if not has_rows(kind):
            return kind
        if (done := divided(node, last, method=folder == "torch.Tensor")) is not None and self.raises(*done):
            return "other"
        if last in ("linear", "matmul", "mm"):
            factors = [self.factor(a) for a in arguments]
            return self._contracted(kinds[0], join(*factors, *kinds[1 + len(factors) :]))
        if last in ("layer_norm", "rms_norm"):
            return "rows" if has_rows(kinds[0]) and not any(has_rows(k) for k in kinds[1:]) else "other"
        if last == "unsqueeze" and rowwise.is_inside(arguments, keywords, flat=self._flat):
            return "rows"
        if last == "gather" and not self.indexed and any(has_rows(k) for k in kinds[1:]):
            return "other"
        if last in rowwise.ALONG:
            return (
                kinds[0] if kinds[0] == "rows" and rowwise.is_inside(arguments, keywords, flat=self._flat) else "other"
            )
        if last in rowwise.COMPARE:
            inside = rowwise.compares_inside(last, arguments[1:], keywords, flat=self._flat)
            return "line" if kinds[:2] == ["rows", "rows"] and inside else "other"
        return kind if last in rowwise.EACH or rowwise.is_loss_of_each(last, keywords) else "other"
