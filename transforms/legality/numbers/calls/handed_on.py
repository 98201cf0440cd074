"""Numbers that are handed to a function of the file: what it does with a 0-d tensor instead."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Hashable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from graphmend.analysis.lattice.values import Tensor, options
from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.bindings import reaching
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.calls.returned import Returned
from graphmend.transforms.legality.numbers.counterparts import joined
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
        """Does a call give the number to a function of the file?"""
        parameter = parameter_of(self.facts, call, node)
        if parameter is None:
            return False
        self._ask_within(parameter, call, dtype, lambda uses: uses.name(parameter.name))
        function = parameter.facts.function.name
        says = f"`{function}` is given a 0-d tensor for `{parameter.name}`"
        self.differences.append(Difference("type", says))
        return True

    def _ask_within(
        self, parameter: Parameter, call: ast.Call, dtype: Hashable, ask: Callable[[HandedOn], None]
    ) -> None:
        """Asks what a function does with what a call gives it. It is written otherwise where nothing else calls it."""
        function = parameter.facts.function
        if function in self.callers or function is self.facts.function:
            raise NeedsPythonNumberError(f"`{function.name}` calls itself")
        uses = self._attempted(parameter.facts, call, dtype, ask)
        if (adds := _adds_in_place(parameter.facts, uses)) is not None:
            raise NeedsPythonNumberError(f"`{shortened(adds)}` in `{function.name}` may change the caller's tensor")
        self.hands_over = True
        whole = _is_only_call(self.facts, function, call) and not (self.is_partial or self._may_be_number)
        # `s = s + n` is the same for the numbers of other calls
        forms = [form for form in uses.counterparts if not isinstance(form, ast.AugAssign)]
        if left := [*uses.also, *(() if whole else forms)]:
            raise NeedsPythonNumberError(f"`{shortened(left[0])}` in `{function.name}` needs a Python number")
        joined(self.counterparts, uses.counterparts)
        self.computes |= uses.computes
        self.jumps += uses.jumps
        self.differences += uses.differences

    def _attempted(
        self, facts: FunctionFacts, call: ast.Call, dtype: Hashable, ask: Callable[[HandedOn], None]
    ) -> HandedOn:
        """The uses in a function, where it stays as it is, or else where it is written otherwise."""
        known = {name: copy(seen) for name, seen in vars(self).items() if isinstance(seen, (list, set, dict))}
        for rewrites in (False, True):
            uses = self._in(facts, dtype, rewrites=rewrites)
            uses.callers, uses.is_partial = self.callers | {self.facts.function}, self.is_partial
            uses.returns_to = partial(self._handed_back, uses, call)
            uses.returns_holder = partial(self._holder_back, uses, call)
            try:
                ask(uses)
            except NeedsPythonNumberError:
                if rewrites or not self.rewrites:
                    raise
                vars(self).update(known)  # what was found behind the call is found once more
                continue
            return uses
        raise AssertionError("an attempt returns or raises")

    @abstractmethod
    def _carry(self, node: ast.expr, path: Any, dtype: Hashable) -> None:
        """Follows a container that holds the number."""

    def _handed_back(self, within: HandedOn, call: ast.Call, dtype: Hashable) -> None:
        if not isinstance(self.facts.value(call), Tensor):  # what is computed with the number is a tensor as before
            self._behind(within, dtype, lambda uses: uses._follow(call, dtype))

    def _holder_back(self, within: HandedOn, call: ast.Call, dtype: Hashable, path: Any) -> None:
        self._behind(within, dtype, lambda uses: uses._carry(call, path, dtype))

    def _behind(self, within: HandedOn, dtype: Hashable, ask: Callable[[HandedOn], None]) -> None:
        """Goes on behind a call of a function. What that may give besides is not written as a tensor's."""
        if within._always_returned():
            ask(self)
            return
        uses = self._in(self.facts, dtype, rewrites=False)
        uses.callers, uses.is_partial = self.callers, True
        uses.returns_to, uses.returns_holder = self.returns_to, self.returns_holder
        ask(uses)
        if left := [*uses.also, *uses.counterparts]:
            raise NeedsPythonNumberError(f"`{shortened(left[0])}` may be of a Python number")
        self.computes |= uses.computes
        self.hands_over |= uses.hands_over
        self.jumps += uses.jumps
        self.asks += uses.asks
        self.differences += uses.differences


def _is_only_call(facts: FunctionFacts, function: ast.AST, call: ast.Call) -> bool:
    """Is a function of the file called at one place, and named nowhere else?"""
    name, tree = getattr(function, "name", None), facts.source.tree
    nodes = nodes_in(tree) if tree is not None else ()
    named = [n for n in nodes if (getattr(n, "attr", None) or getattr(n, "id", None)) == name]
    return [n for n in named if isinstance(n, (ast.Name, ast.Attribute))] == [call.func]


def _adds_in_place(facts: FunctionFacts, uses: HandedOn) -> ast.AugAssign | None:
    """What changes a name, or an attribute that holds the number, in place, and is not known to be another tensor."""
    for node in nodes_in(facts.function):
        if not isinstance(node, ast.AugAssign) or cast("ast.expr", node) in uses.counterparts:
            continue
        match node.target:
            case ast.Name(id=name):
                if not isinstance(facts.before(node).get(name), Tensor):
                    return node
            case ast.Attribute() as target:
                if uses.is_followed(ast.unparse(target)):
                    return node
            case ast.Subscript(value=of) if not isinstance(facts.value(of), Tensor):
                return node
    return None


def _is_of_own_object(facts: FunctionFacts, method: ast.expr, definition: ast.FunctionDef) -> bool:
    """Is a method that of an object which the function has made, of the very class that defines it, and stays so?"""
    owner, tree = facts.within(definition).owner, facts.source.tree
    if not isinstance(method, ast.Attribute) or not isinstance(method.value, ast.Name) or owner is None or tree is None:
        return False
    made = reaching(facts, method.value)
    if not isinstance(made, ast.Call) or not isinstance(made.func, ast.Name) or made.func.id != owner.name:
        return False
    special = any(isinstance(s, ast.FunctionDef) and s.name.startswith("__getattr") for s in owner.body)
    replaced = any(
        isinstance(n, ast.Attribute) and n.attr == definition.name and isinstance(n.ctx, ast.Store)
        for n in nodes_in(tree)
    )
    return not special and not replaced and is_still_named(facts, made.func)


class Parameter(NamedTuple):
    """A parameter of a function, with the facts within that."""

    facts: FunctionFacts
    name: str


def parameter_of(facts: FunctionFacts, call: ast.Call, node: ast.expr) -> Parameter | None:
    """The parameter that a call of a plain function, or of a method that is the only one of its name, gives `node` for;
    None where another function may be called, or what it is given for is not known.
    """
    found = [one for one in options(facts.value(call.func)) if isinstance(one, Function)]
    if len({one.info for one in found}) != 1 or len(found) != len([*options(facts.value(call.func))]):
        return None  # of an object in several states there is one method
    function = found[0]
    if function.info.module.source.path != facts.source.path:
        return None
    if not is_still_named(facts, call.func):
        return None
    definition = function.info.node
    if not isinstance(definition, ast.FunctionDef) or definition.decorator_list:
        return None
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in nodes_in(definition)):
        return None
    if function.bound is not None and not _is_of_own_object(facts, call.func, definition):
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
    return Parameter(facts.within(definition), name) if name is not None else None
