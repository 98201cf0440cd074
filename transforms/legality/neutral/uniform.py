"""Tensors whose elements are all one number: what is computed of a mask that a test says to mask nothing."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import reads
from graphmend.transforms.code.qualified_names import called, constant, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.dtypes import kinds
from graphmend.transforms.legality.memory import shares
from graphmend.transforms.legality.neutral.binding import Binding, binding, key
from graphmend.transforms.legality.neutral.elements import (
    COMPARE,
    COMPARISONS,
    CONVERT,
    NAMED,
    Element,
    arranges,
    compared,
    indices,
    is_bool,
    is_place,
    is_zero,
    number,
    parts,
    to_bool,
)
from graphmend.transforms.legality.neutral.told import Told
from graphmend.transforms.legality.writes.changes import changes
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_LARGEST = 3e38
"""Zero times a finite number is zero; a larger one is infinite in float32."""
#: what they hold is finite where it meets half precision as well, for which torch computes in float32
_NARROW = ("torch.float16", "torch.half", "torch.bfloat16", "torch.float32", "torch.float")
_DEEPEST = 8


class Uniform(Told):
    """What all elements of what a function computes are, where tests hold and parameters are given such tensors."""

    def __init__(
        self,
        facts: FunctionFacts,
        given: Mapping[Binding, Element] | None = None,
        depth: int = 0,
        judged: Collection[ast.AST] = (),
    ) -> None:
        super().__init__(facts, judged)
        self.bound = dict(given or {})
        self.taken: list[Difference] = []
        """What is taken for granted."""
        self._depth = depth

    @answers("domain")
    def of(self, node: ast.expr) -> Element | None:
        """What all elements of a value are; None where that is not known."""
        facts = self.facts
        known = None if isinstance(node, ast.Name) else self.known.get(key(facts, node))
        if (element := known) is not None and self.settled(node):
            return element
        if (literal := constant(node)) is not None:
            return literal if isinstance(literal, (bool, int, float)) else None
        element = self._computed(node)
        if element == "zero" or isinstance(element, (int, float)):
            return not is_zero(element) if is_bool(facts, node) else element
        return element

    def _computed(self, node: ast.expr) -> Element | None:
        match node:
            case ast.Name(ctx=ast.Load()):
                return self._name(node)
            case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
                return self._not(operand)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                element = self.of(operand)
                if element == "zero":
                    return 0
                return -element if isinstance(element, (int, float)) and not isinstance(element, bool) else None
            case ast.BinOp(left=left, op=op, right=right):
                return self._arithmetic(left, op, right)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in COMPARISONS:
                return compared(self.of(left), COMPARISONS[type(op)], self.of(right))
            case ast.Subscript(value=value, slice=index, ctx=ast.Load()):
                return self.of(value) if all(map(is_place, indices(index))) else None
            case ast.IfExp(body=body, orelse=orelse):
                one, other = self.of(body), self.of(orelse)
                return one if one == other and type(one) is type(other) else None
            case ast.Call():
                return self._call(node)
        return None

    @answers("domain")
    def mask(self, node: ast.expr) -> Element | None:
        """What all elements of a mask are: numbers other than zero, which are added, mask something."""
        element = self.of(node)
        return element if element != "nonzero" or "bool" in kinds(self.facts, node) else None

    @answers("domain")
    def left(self, name: str, statements: Sequence[ast.stmt]) -> Element | None:
        """What all elements are of a mask that statements bind to a name last, and change in place behind that."""
        element: Element | None = None
        for statement in statements:
            match statement:
                case ast.Assign(targets=[ast.Name(id=own)], value=value) if own == name:
                    element = self.mask(value)
                case _:
                    inside = {*nodes_in(statement)}
                    if any(change in inside for change, target in changes(self.facts) if name in reads(target)):
                        element = self._changed(statement, name, element)
        return element

    def _name(self, node: ast.Name) -> Element | None:
        facts, bound = self.facts, binding(self.facts, node)
        if bound in self.bound:
            return self.bound[bound] if self.steady(node) else None
        if (told := self.named.get(bound)) is not None:
            return told if self.steady(node) else None
        if bound.value is None:
            return None
        element = self.of(bound.value)
        own = shares(facts, node).paths
        touching = [c for c, target in changes(facts) if own & shares(facts, target).paths]
        for statement in _between(facts, bound.by, node):
            inside = [c for c in touching if any(n is c for n in nodes_in(statement))]
            if inside:
                element = self._changed(statement, node.id, element)
                touching = [c for c in touching if c not in inside]
        return element if not touching else None

    def _changed(self, statement: ast.stmt, name: str, element: Element | None) -> Element | None:
        """What all elements are after a change in place."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=own), attr="masked_fill_"), args=args)):
                if own == name and len(args) == 2:
                    return self._chosen(args[0], args[1], element)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=own), slice=mask)], value=value) if own == name:
                return self._chosen(mask, value, element)
        return None

    def _chosen(self, mask: ast.expr, value: ast.expr, element: Element | None) -> Element | None:
        """`value` where a mask is true, and something else where it is not."""
        taken = self.truth(mask)
        if taken is False and element == "zero" and self._is_number(value):
            self.taken.append(
                Difference("dtype", f"what is filled with `{ast.unparse(value)}` is taken to be of numbers")
            )
            return 0
        return None if taken is None else self.of(value) if taken else element

    def _is_number(self, value: ast.expr) -> bool:
        """Is it no bool, and would be one in a tensor of bools?"""
        literal = constant(value)
        return self._finite(value) if literal is None else isinstance(literal, (int, float)) and literal not in (0, 1)

    def truth(self, mask: ast.expr) -> bool | None:
        """Is a mask true everywhere, or nowhere? Where its dtype is not known it is taken to be of bools: torch takes
        no other ones.
        """
        taken = self.of(mask)
        if isinstance(taken, bool):
            return taken
        if (taken == "nonzero" or is_zero(taken)) and self._assume_bool(mask):
            return taken == "nonzero"
        return None

    def _not(self, operand: ast.expr) -> Element | None:
        element = self.of(operand)
        if isinstance(element, bool):
            return not element
        if isinstance(element, str) and self._assume_bool(operand):
            return element == "zero"
        return None

    def _assume_bool(self, node: ast.expr) -> bool:
        """A mask whose dtype is not known is one of bools where it is negated or selects."""
        if kinds(self.facts, node) & {"bool"}:
            says = f"`{ast.unparse(node)}` is taken to be of bools"
            if not is_bool(self.facts, node):
                self.taken.append(Difference("dtype", says))
            return True
        return False

    def _arithmetic(self, left: ast.expr, op: ast.operator, right: ast.expr) -> Element | None:
        one, other = self.of(left), self.of(right)
        if isinstance(op, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            if not (isinstance(one, bool) and isinstance(other, bool)):
                return None
            return {ast.BitAnd: one & other, ast.BitOr: one | other, ast.BitXor: one ^ other}[type(op)]
        one, other = number(one), number(other)
        if isinstance(op, ast.Mult) and ((one == 0 and self._finite(right)) or (other == 0 and self._finite(left))):
            return 0
        if isinstance(op, ast.Div) and one == 0 and isinstance(other, (int, float)) and other != 0:
            return 0
        if not (isinstance(one, (int, float)) and isinstance(other, (int, float))):
            return None
        if {one, other} <= {0, 1}:
            if isinstance(op, ast.Sub):
                return int(one) - int(other)
            both = "bool" in kinds(self.facts, left) & kinds(self.facts, right)  # one and one are one then
            added = isinstance(op, ast.Add) and not (both and one and other)
            return int(one) + int(other) if added else None
        return None

    def _finite(self, node: ast.expr) -> bool:
        """Is a factor finite: a number, or what `finfo` says of a dtype, which is taken to be no wider one?"""
        factor = number(self.of(node))
        if isinstance(factor, (int, float)):
            return abs(factor) < _LARGEST
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._finite(operand)
            case ast.Attribute(value=ast.Call(args=[dtype]) as info, attr="min" | "max"):
                if called(self.facts, info, "torch.finfo") is None:
                    return False
                if qualified(self.facts, dtype) not in _NARROW:
                    says = f"`{ast.unparse(node)}` of a wider dtype than what it is multiplied with gives NaN"
                    self.taken.append(Difference("nan", says))
                return True
        return False

    def _call(self, node: ast.Call) -> Element | None:
        facts = self.facts
        receiver, arguments, name = parts(facts, node)
        name = NAMED.get(name, name)
        if isinstance(function := facts.value(node.func), Function):
            return self._own(node, function)
        made = (qualified(facts, node.func) or "").rpartition(".")[0] in ("torch", "torch.Tensor")
        if made and name in ("zeros", "zeros_like", "new_zeros"):
            return "zero" if "bool" in kinds(facts, node) else 0
        if made and name in ("ones", "ones_like", "new_ones"):
            return 1
        if made and name in ("full", "full_like", "new_full"):
            values = [k.value for k in node.keywords if k.arg == "fill_value"] or arguments[-1:]
            literal = constant(values[0]) if values else None
            if literal == 0 and "bool" in kinds(facts, node):
                return "zero"
            return literal if isinstance(literal, (bool, int, float)) else None
        if receiver is None:
            return None
        if name == "where" and len(arguments) == 2:
            return self._chosen(receiver, arguments[0], self.of(arguments[1]))
        if name == "masked_fill" and len(arguments) == 2:
            return self._chosen(arguments[0], arguments[1], self.of(receiver))
        if name == "logical_not":
            element = self.of(receiver)
            return None if element is None else is_zero(element)
        if name in COMPARE and len(arguments) == 1:
            return compared(self.of(receiver), name, self.of(arguments[0]))
        if name == "log":
            return 0 if self.of(receiver) == 1 else None
        return self._arranged(node, name, self.of(receiver))

    def _arranged(self, node: ast.Call, name: str, element: Element | None) -> Element | None:
        if arranges(self.facts, node):
            return element
        if element is None or not (name in CONVERT or name == "bool"):
            return None
        if to_bool(self.facts, node):
            return not is_zero(element)
        if element == "nonzero":
            return None
        if is_zero(element):  # what `to` takes may be a device: a tensor of bools stays one
            return "zero" if "bool" in kinds(self.facts, node) and name in ("to", "type", "type_as") else 0
        return 1 if element == 1 else None

    def _own(self, node: ast.Call, function: Function) -> Element | None:
        """What a function of the program gives, by its one `return`."""
        inner = enter(self.facts, node, function)
        if inner is None or self._depth > _DEEPEST:
            return None
        facts, given = inner
        elements = {Binding(n, facts.function): self.of(v) for n, v in given.items()}
        inside = Uniform(facts, {b: e for b, e in elements.items() if e is not None}, self._depth + 1)
        returns = [n.value for n in nodes_in(facts.function) if isinstance(n, ast.Return)]
        found = {(inside.of(v), type(inside.of(v))) if v is not None else None for v in returns}
        self.taken += inside.taken
        one = next(iter(found), None) if len(found) == 1 else None
        return one[0] if one is not None else None


def enter(facts: FunctionFacts, call: ast.Call, function: Function) -> tuple[FunctionFacts, dict[str, ast.expr]] | None:
    """The facts of a function of the file that is called, and what its parameters are given; None where that is not
    plain.
    """
    node = function.info.node
    if not isinstance(node, ast.FunctionDef):
        return None
    return entered(facts, call, node, bound=function.bound is not None)


def entered(
    facts: FunctionFacts, call: ast.Call, node: ast.FunctionDef, *, bound: bool
) -> tuple[FunctionFacts, dict[str, ast.expr]] | None:
    """The same of a definition, which is called as a method where it is `bound`."""
    tree = facts.source.tree
    if tree is None or not any(n is node for n in nodes_in(tree)):
        return None
    if node.decorator_list:
        return None
    starred = any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
    if starred or node.args.vararg or node.args.kwarg or node.args.posonlyargs:
        return None
    names = [a.arg for a in node.args.args][1 if bound else 0 :]
    given = dict(zip(names, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}
    return facts.within(node), given


def _between(facts: FunctionFacts, by: ast.AST, node: ast.expr) -> Iterator[ast.stmt]:
    """The statements of a block from one that binds a name up to the one that reads it."""
    if not isinstance(by, ast.stmt):
        return
    block = facts.body_of(by)
    around = {node, *facts.ancestors(node)}
    for statement in block[block.index(by) + 1 :]:
        if statement in around:
            return
        yield statement
