"""Numbers that are handed to a function of the file: what it does with a 0-d tensor instead."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import Tensor
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.calls.returned import Returned
from graphmend.transforms.legality.own_functions import is_still_named, is_the_one
from graphmend.transforms.questions import take_for_granted

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


class HandedOn(Returned):
    """Follows a number into the functions of the file that it is given to, and what they return for it."""

    @abstractmethod
    def name(self, name: str) -> None: ...

    @abstractmethod
    def _follow(self, node: ast.expr, dtype: Hashable) -> None: ...

    @abstractmethod
    def _in(self, facts: FunctionFacts, dtype: Hashable, *, rewrites: bool) -> HandedOn: ...

    def _is_handed_on(self, call: ast.Call, node: ast.expr, dtype: Hashable) -> bool:
        """Does a call give the number to a function of the file? That stays as it is, for its other calls."""
        parameter = _parameter_of(self.facts, call, node)
        if parameter is None:
            return False
        function = parameter.facts.function
        if function in self.callers or function is self.facts.function:
            raise NeedsPythonNumberError(f"`{function.name}` calls itself")
        if (adds := _adds_in_place(parameter.facts)) is not None:
            raise NeedsPythonNumberError(f"`{shortened(adds)}` in `{function.name}` may change the caller's tensor")
        uses = self._in(parameter.facts, dtype, rewrites=False)
        uses.callers = self.callers | {self.facts.function}
        uses.returns_to = lambda of, part: self._handed_back(call, of, part)
        uses.name(parameter.name)
        if left := [*uses.also, *uses.counterparts, *uses.asks]:
            raise NeedsPythonNumberError(f"`{shortened(left[0])}` in `{function.name}` needs a Python number")
        self.computes |= uses.computes
        self.jumps += uses.jumps
        says = f"`{function.name}` is given a 0-d tensor for `{parameter.name}`"
        self.differences += [*uses.differences, Difference("type", says)]
        return True

    def _handed_back(self, call: ast.Call, dtype: Hashable, part: ast.expr | None) -> None:
        if isinstance(self.facts.value(call), Tensor):
            return  # what is computed with the number is a tensor as before
        if part is not None:
            raise NeedsPythonNumberError(f"`{shortened(call)}` returns a Python number among others")
        self._follow(call, dtype)


def _adds_in_place(facts: FunctionFacts) -> ast.AugAssign | None:
    """What changes a name in place that is not known to be another tensor."""
    for node in nodes_in(facts.function):
        match node:
            case ast.AugAssign(target=ast.Name(id=name)):
                if not isinstance(facts.before(node).get(name), Tensor):
                    return node
            case ast.AugAssign(target=ast.Attribute()):
                return node
            case ast.AugAssign(target=ast.Subscript(value=of)) if not isinstance(facts.value(of), Tensor):
                return node
    return None


class _Parameter(NamedTuple):
    """A parameter of a function, with the facts within that."""

    facts: FunctionFacts
    name: str


def _parameter_of(facts: FunctionFacts, call: ast.Call, node: ast.expr) -> _Parameter | None:
    """The parameter that a call of a plain function, or of a method that is the only one of its name, gives `node` for;
    None where another function may be called, or what it is given for is not known.
    """
    function = facts.value(call.func)
    if not isinstance(function, Function) or function.info.module.source.path != facts.source.path:
        return None
    if not is_still_named(facts, call.func):
        return None
    definition = function.info.node
    if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
        return None
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes_in(definition)):
        return None
    if function.bound is not None:
        if not is_the_one(function, facts.source.tree):
            return None
        take_for_granted(f"`{ast.unparse(call.func)}` is taken to be the method in sight, overridden nowhere else")
    arguments = definition.args
    plain = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1 if function.bound is not None else 0 :]
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    named = {*plain[len(arguments.posonlyargs) :], *(a.arg for a in arguments.kwonlyargs)}
    by_place = dict(zip(map(id, call.args), plain, strict=False))
    by_name = {id(k.value): k.arg for k in call.keywords if k.arg in named}
    name = by_place.get(id(node)) or by_name.get(id(node))
    return _Parameter(facts.within(definition), name) if name is not None else None
