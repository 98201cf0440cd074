"""Mends that would make gradients NaN just where a program sees to values that are not finite.

What is selected by `torch.where` sends zeros into the side that is not taken, and a zero that reaches a value that is
NaN or infinite, or what has made it, is NaN behind that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import TYPE_CHECKING

from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import bindings, reaching
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.fix import Difference

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

POISONED = Difference("gradients", "gradients become NaN where values are not finite, which is asked for")
_FINITE = frozenset("isfinite isnan isinf isposinf isneginf".split())
_INFINITE = frozenset(f"{module}.inf" for module in ("math", "numpy", "torch"))
#: functions and methods whose result is about a mask as the mask is
_OF_MASKS = frozenset(
    "any all sum item bool int float logical_not logical_and logical_or logical_xor bitwise_not bitwise_and bitwise_or "
    "count_nonzero max amax reshape view flatten squeeze unsqueeze detach to cpu clone".split()
)


def poisons(facts: FunctionFacts, differences: Iterable[Difference]) -> bool:
    """Do gradients reach a side that is not taken, by a mend whose finding asks whether values are finite?"""
    reached = any(difference.kind in ("gradients", "zero-gradients") for difference in differences)
    return reached and isinstance(facts.node, ast.expr) and _Asked(facts).by(facts.node)


def trains(facts: FunctionFacts) -> bool:
    """Does a function most likely compute what a training step goes back through? A method does: of a module, of a
    loss. What a function of its own is called with may be anything.
    """
    return facts.owner is not None


class _Asked:
    """Whether a test looks for NaN or infinity, itself or by a mask that was made of that before."""

    def __init__(self, facts: FunctionFacts) -> None:
        self._facts = facts
        self._seen: set[str] = set()

    def by(self, test: ast.expr) -> bool:
        match test:
            case ast.Call(func=function, args=args):
                last = (qualified(self._facts, function) or ast.unparse(function)).rpartition(".")[2]
                owner = [function.value] if isinstance(function, ast.Attribute) else []
                value = self._facts.value(function)
                if last in _FINITE or (isinstance(value, Function) and _is_about_it(value.info.node)):
                    return True
                return last in _OF_MASKS and any(map(self.by, (*owner, *args)))
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]) if ast.dump(
                left
            ) == ast.dump(right) or self._is_infinite(right):
                return True
            case ast.Compare(left=left, comparators=others):
                return any(map(self.by, (left, *others)))
            case ast.BoolOp(values=values):
                return any(map(self.by, values))
            case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.BitXor(), right=right):
                return self.by(left) or self.by(right)
            case ast.UnaryOp(operand=inner) | ast.NamedExpr(value=inner) | ast.Subscript(value=inner):
                return self.by(inner)
            case ast.Name() | ast.Attribute():
                return any(map(self.by, self._made_of(test)))
        return False

    def _is_infinite(self, node: ast.expr) -> bool:
        match node:
            case ast.UnaryOp(operand=operand):
                return self._is_infinite(operand)
            case ast.Call(args=[ast.Constant(value=str())]):
                return qualified(self._facts, node.func) == "builtins.float"
        return qualified(self._facts, node) in _INFINITE

    def _made_of(self, place: ast.Name | ast.Attribute) -> list[ast.expr]:
        """What a name, or an attribute that the function stores, may have got in front of where it is read."""
        text = ast.unparse(place)
        if text in self._seen:
            return []
        self._seen.add(text)
        if isinstance(place, ast.Name) and (bound := reaching(self._facts, place)) is not None:
            values = [bound]
        else:
            values = [b.value for b in bindings(self._facts).get(text, []) if b.value is not None]
        for node in nodes_in(self._facts.function):
            match node:
                case ast.AugAssign(target=target, value=value) if ast.unparse(target) == text:
                    values.append(value)
                case ast.Assign(targets=[ast.Attribute() as target], value=value) if ast.unparse(target) == text:
                    values.append(value)
        return [value for value in values if value.lineno <= place.lineno]


def _is_about_it(function: ast.AST) -> bool:
    """Does a function of the file look for what is not finite?"""
    names = (getattr(node, "attr", getattr(node, "id", "")) for node in nodes_in(function))
    return not _FINITE.isdisjoint(names)
