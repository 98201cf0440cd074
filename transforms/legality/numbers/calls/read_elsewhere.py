"""Numbers that are kept in an attribute: what other functions of the file that read it do with a 0-d tensor instead."""

from __future__ import annotations

import ast
import re
from abc import abstractmethod
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.entities import class_of
from graphmend.analysis.resolution.classes import mro
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import constant
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.calls.handed_on import HandedOn

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_CONVERSIONS = frozenset("builtins.float builtins.int builtins.bool".split()) | {
    f"math.{name}"
    for name in "ceil cos exp fabs floor isfinite isinf isnan log log10 log1p log2 pow sin sqrt tanh".split()
}
_LOGGING = ("debug", "info", "warning", "error", "critical")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class ReadElsewhere(HandedOn):
    """Follows what outlives the function to its readers in sight. Who reads it in another file is not known, which is a
    difference that is named.
    """

    _is_elsewhere = False
    """Is this asked of a reader in another function?"""

    @abstractmethod
    def _in(self, facts: FunctionFacts, dtype: Hashable, *, rewrites: bool) -> ReadElsewhere: ...

    def _read_elsewhere(self, target: ast.expr, dtype: Hashable) -> None:
        attribute = target.value if isinstance(target, ast.Subscript) else target
        if not isinstance(attribute, ast.Attribute):
            return
        for facts, read in _reads(self.facts, attribute):
            node = read if attribute is target else facts.parent(read)
            if attribute is not target and isinstance(read.ctx, ast.Load) and _takes_all(node):
                raise NeedsPythonNumberError(f"`{shortened(node or read)}` needs Python numbers")
            if not isinstance(node, ast.expr) or node in self._elsewhere:
                continue
            if not (node is read or _may_be_entry(node, target)) or isinstance(facts.value(node), Tensor):
                continue
            if isinstance(adds := facts.parent(node), ast.AugAssign) and adds.target is node:
                raise NeedsPythonNumberError(f"`{shortened(adds)}` would change the tensor in place")
            if not isinstance(getattr(node, "ctx", None), ast.Load):
                continue
            self._elsewhere.add(node)
            self._read_in(facts, node, dtype)

    def _takes_number(self, call: ast.Call, callee: str) -> bool:
        """Does a call in another function take a Python number out of a tensor by itself? That may break the graph, and
        gives the same.
        """
        match call:  # what a logger is may not be known in code that is not traced
            case ast.Call(func=ast.Attribute(attr=name), args=[text, *_]) if name in _LOGGING:
                return self._is_elsewhere and _formats_numbers(constant(text))
        return self._is_elsewhere and callee in _CONVERSIONS

    def _read_in(self, facts: FunctionFacts, node: ast.expr, dtype: Hashable) -> None:
        uses = self._in(facts, dtype, rewrites=False)
        uses.callers = self.callers | {self.facts.function}
        uses.returns_to = lambda *_: None  # to whom is named, as for those that read the attribute itself
        uses._elsewhere, uses._is_elsewhere = self._elsewhere, True
        uses.follow(node)
        if left := [*uses.also, *uses.counterparts]:
            raise NeedsPythonNumberError(f"`{shortened(left[0])}` in `{facts.function.name}` needs a Python number")
        self.differences += uses.differences


def _reads(facts: FunctionFacts, attribute: ast.Attribute) -> Iterator[tuple[FunctionFacts, ast.Attribute]]:
    """Where other functions of the file read an attribute of that name, of what may be the same object."""
    tree = facts.source.tree
    for function in nodes_in(tree) if tree is not None else ():
        if not isinstance(function, _DEFINITIONS) or function is facts.function:
            continue
        within: FunctionFacts | None = None
        for node in nodes_in(function):
            if not (isinstance(node, ast.Attribute) and node.attr == attribute.attr):
                continue
            within = within or facts.within(function)
            if not isinstance(node.ctx, ast.Load) and not isinstance(within.parent(node), ast.AugAssign):
                continue
            if _may_be_same(facts, attribute.value, within, node.value):
                yield within, node


def _may_be_same(facts: FunctionFacts, one: ast.expr, within: FunctionFacts, other: ast.expr) -> bool:
    """May two expressions of different functions be one object? Not those of unrelated classes."""
    if isinstance(within.value(other), Tensor):
        return False
    first, second = class_of(facts.value(one)), class_of(within.value(other))
    if first is not None and second is not None:
        return first in mro(second) or second in mro(first)
    if not (_is_self(facts, one) and _is_self(within, other)):
        return True
    families = _families(facts.source.tree)
    return any({facts.owner, within.owner} <= family for family in families)


def _families(tree: ast.AST | None) -> list[set[ast.ClassDef | None]]:
    """For each class of a file it and its bases there, whose methods one object has."""
    classes = {n.name: n for n in nodes_in(tree) if isinstance(n, ast.ClassDef)} if tree is not None else {}
    found: list[set[ast.ClassDef | None]] = []
    for cls in classes.values():
        family: set[ast.ClassDef | None] = set()
        todo = [cls]
        while todo:
            if (one := todo.pop()) not in family:
                family.add(one)
                todo += [classes[b.id] for b in one.bases if isinstance(b, ast.Name) and b.id in classes]
        found.append(family)
    return found


def _is_self(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an expression the first parameter of a method?"""
    arguments = facts.function.args
    first = next(iter([*arguments.posonlyargs, *arguments.args]), None)
    return isinstance(node, ast.Name) and first is not None and node.id == first.arg and facts.owner is not None


def _formats_numbers(text: object) -> bool:
    """Does a format write all that it is given as floating numbers, as it does with a tensor of one?"""
    return isinstance(text, str) and set(re.findall(r"%[-+ #\d.]*(.)", text)) <= {*"feg%"}


def _takes_all(node: ast.AST | None) -> bool:
    """May what a dictionary is given to, or a method of it, read all that it holds?"""
    match node:
        case (
            ast.Subscript()
            | ast.Compare(ops=[ast.In() | ast.NotIn()])
            | ast.Attribute(attr="clear" | "keys" | "update")
        ):
            return False
        case ast.Call(func=ast.Name(id="len")):
            return False
    return True


def _may_be_entry(node: ast.expr, target: ast.expr) -> bool:
    """Does a subscript ask for the same key, or for one that may be?"""
    assert isinstance(target, ast.Subscript)
    if not isinstance(node, ast.Subscript) or isinstance(node.ctx, ast.Del):
        return False
    one, other = constant(node.slice), constant(target.slice)
    return one is None or other is None or one == other
