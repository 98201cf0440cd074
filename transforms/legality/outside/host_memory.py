"""Which names of a function hold what it makes itself: arrays, lists and numbers, and parts and views of these."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import writes
from graphmend.transforms.code.qualified_names import qualified

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: functions of NumPy that give what nothing else has; so do draws
_FRESH = frozenset(
    "zeros ones empty full zeros_like ones_like empty_like full_like arange linspace concatenate stack vstack hstack "
    "tile repeat where nonzero argsort sort cumsum unique sum mean max min argmax argmin clip floor ceil exp log sqrt "
    "add subtract multiply divide maximum minimum copy array".split()
)
#: those whose result may lie in the memory of the first argument
_VIEWS = frozenset("broadcast_to reshape expand_dims squeeze ravel transpose asarray swapaxes moveaxis flip".split())
#: functions of Python that give a number or a text, and those that give a new container of what they are given
_NUMBERS = frozenset("int float bool str len round abs".split())
_CONTAINERS = frozenset("list tuple set dict sorted".split())
_PASSING = frozenset("list tuple set dict sorted reversed zip enumerate max min".split())
#: methods that give what nothing else has, whatever they are called on
_COPIES = frozenset("item tolist sum mean max min any all argmax argmin cumsum argsort nonzero prod std var".split())


class MadeNames:
    """What the names of a function hold, as far as it is its own.

    Something is *new* where it is made in the function, and *whole* where all that it holds is new, too. A new list
    may hold what was there before.
    """

    def __init__(self, facts: FunctionFacts, function: ast.FunctionDef, outside: Collection[str]) -> None:
        """What the names in `outside` hold was there before."""
        self._facts = facts
        self._bound: dict[str, list[ast.expr | None]] = {}
        self._held: dict[str, list[ast.expr]] = {}
        for node in nodes_in(function):
            self._bind(node)
        names = {*self._bound} - {*outside}
        self._new = self._whole = frozenset(names)
        while gone := {n for n in self._whole if not self._is_whole_name(n)}:
            self._whole -= gone
        while gone := {n for n in self._new if not all(v is not None and self.is_new(v) for v in self._bound[n])}:
            self._new -= gone

    def _bind(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self._add(name, value)
            case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name))], value=value):
                self._held.setdefault(name, []).append(value)
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "insert" | "extend"), args=given):
                self._held.setdefault(name, []).extend(given)
            case ast.AugAssign(target=ast.Name(id=name), value=value):
                self._held.setdefault(name, []).append(value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self._add(name, value)
            case ast.For(target=ast.Name(id=name), iter=over) | ast.comprehension(target=ast.Name(id=name), iter=over):
                counts = isinstance(over, ast.Call) and qualified(self._facts, over.func) == "builtins.range"
                self._add(name, ast.Constant(0) if counts else over)
            case ast.For(
                target=ast.Tuple(elts=[ast.Name(id=count), target]), iter=ast.Call(func=called, args=[over])
            ) if qualified(self._facts, called) == "builtins.enumerate":
                self._add(count, ast.Constant(0))
                for name in writes(target):
                    self._add(name, over if isinstance(target, ast.Name) else None)
            case ast.Assign(targets=targets):
                self._unknown(*targets)
            case ast.AnnAssign(target=target) | ast.For(target=target) | ast.comprehension(target=target):
                self._unknown(target)
            case ast.withitem(optional_vars=ast.expr() as target):
                self._unknown(target)
            case ast.arg(arg=name) | ast.ExceptHandler(name=str() as name) | ast.FunctionDef(name=name):
                self._add(name, None)

    def _add(self, name: str, value: ast.expr | None) -> None:
        self._bound.setdefault(name, []).append(value)

    def _unknown(self, *targets: ast.expr) -> None:
        for target in targets:
            for name in writes(target):
                self._add(name, None)

    def _is_whole_name(self, name: str) -> bool:
        values = [*self._bound[name], *self._held.get(name, ())]
        return all(v is not None and self.is_whole(v) for v in values)

    def may_be_stored_to(self, target: ast.Subscript) -> bool:
        """Is `target = value` seen by nobody else?"""
        return self.is_new(target.value) if isinstance(target.value, ast.Name) else self.is_whole(target.value)

    def may_be_added_to(self, target: ast.expr) -> bool:
        """Is `target += value` seen by nobody else?"""
        if isinstance(target, ast.Name):
            return self.is_new(target)
        return isinstance(target, ast.Subscript) and self.is_whole(target.value)

    def is_new(self, value: ast.expr) -> bool:
        """Is a value made in the function, whatever it holds?"""
        match value:
            case ast.List() | ast.ListComp() | ast.Dict() | ast.Set() | ast.DictComp() | ast.SetComp() | ast.BinOp():
                return True
            case ast.Name(id=name):
                return name in self._new
            case ast.Call(func=ast.Name(id=name)) if name in _CONTAINERS:
                return qualified(self._facts, value.func) == f"builtins.{name}"
            case ast.Call(func=ast.Attribute(attr="copy"), args=[], keywords=[]):
                return True
        return self.is_whole(value)

    def is_whole(self, value: ast.expr) -> bool:
        """Does nothing that was there before share memory with a value?"""
        match value:
            case (
                ast.Constant() | ast.JoinedStr() | ast.Compare() | ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert())
            ):
                return True
            case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values) | ast.Set(elts=values):
                return all(map(self.is_whole, values))
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_whole(body) and self.is_whole(orelse)
            case ast.BinOp(
                op=ast.Add() | ast.Mult(), left=left, right=right
            ):  # of lists, what they hold stays the same
                return self.is_whole(left) and self.is_whole(right)
            case ast.BinOp():
                return True
            case ast.ListComp(elt=elt) | ast.SetComp(elt=elt) | ast.GeneratorExp(elt=elt):
                return self.is_whole(elt)
            case ast.Name(id=name):
                return name in self._whole
            case ast.Subscript(value=owner) | ast.Attribute(value=owner):
                return self.is_whole(owner)
            case ast.NamedExpr(value=inner) | ast.Starred(value=inner):
                return self.is_whole(inner)
            case ast.Call():
                return self._is_whole_call(value)
        return False

    def _is_whole_call(self, call: ast.Call) -> bool:
        name = qualified(self._facts, call.func) or ""
        folder, _, last = name.rpartition(".")
        if folder in ("numpy.random", "random", "math"):
            return folder != "random" or all(map(self.is_whole, call.args))  # `random.choice` gives what there is
        if folder == "numpy":
            plain = not any(k.arg in ("copy", "like", None) for k in call.keywords)
            return plain and (last in _FRESH or all(map(self.is_whole, call.args[: 1 if last in _VIEWS else None])))
        if folder == "builtins":
            return last in _NUMBERS or (last in _PASSING and all(map(self.is_whole, call.args)))
        if isinstance(call.func, ast.Attribute):
            fresh = call.func.attr in _COPIES or (
                call.func.attr == "astype" and len(call.args) == 1 and not call.keywords
            )
            return fresh or self.is_whole(call.func.value)
        return False
