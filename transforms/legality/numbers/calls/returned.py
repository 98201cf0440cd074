"""Numbers that a function of the program returns: what the calls of it in sight do with a 0-d tensor instead."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from graphmend.analysis.facts.function_facts import FunctionFacts
from graphmend.analysis.lattice.values import Scalar, Tensor
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import shortened
from graphmend.transforms.code.qualified_names import number_type, qualified
from graphmend.transforms.fix import Difference
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.numbers.arithmetic import NeedsPythonNumberError
from graphmend.transforms.legality.numbers.containers.records import Records
from graphmend.transforms.legality.numbers.counterparts import Counterpart, joined
from graphmend.transforms.legality.rows.modules import has_hooks

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
#: annotations that a 0-d tensor does not fit
_NUMBERS = ("int", "float", "bool")
#: methods that run where their object is called
_CALLED = ("forward", "__call__")
#: what calls the modules that it is given, or functions
_CALLING = frozenset({"Sequential", "map", "filter", "reduce", "partial", "vmap", "grad", "checkpoint", "sorted"})
_TRANSPARENT = ("builtins.staticmethod", "torch.no_grad", "torch.enable_grad", "torch.inference_mode")


class Returned(Records):
    """Follows a number that is returned to the calls, each with the facts of the function that it stands in."""

    def __init__(self, facts: FunctionFacts, *, rewrites: bool = False) -> None:
        super().__init__(facts, rewrites=rewrites)
        self.callers: frozenset[ast.AST] = frozenset()
        """The functions on the way from a `return`, this one included."""
        self.returns_to: Callable[[Hashable], None] | None = None
        """Follows what the function returns to the one call that is asked about; to all calls otherwise."""
        self.returns_holder: Callable[[Hashable, Any], None] | None = None
        """The same of a container that holds it, with the way from there to the number."""
        self.hands_over = False
        """Does a function of the program, or a place that outlives the call, get the number?"""
        self.is_partial = False
        """May what a function returns be a Python number as well?"""
        self._passed: list[ast.expr] = []
        """What the number was followed through."""
        self._elsewhere: set[ast.expr] = set()
        """What reads it in other functions, from where it was kept."""

    def _is_whole(self, node: ast.expr) -> bool:
        return number_type(self.facts, node) == "int"

    def _needs_tensor(self, node: ast.expr) -> None:
        """A use is written for tensors only: what may stand there instead becomes one as well, or nothing does."""
        for other in self._beside(node):
            if not isinstance(self.facts.value(other), Scalar):
                raise NeedsPythonNumberError(f"`{shortened(other)}` stays a Python number")
            self.also.append(other)

    def _check_seen(self) -> None:
        """Where a use may raise otherwise, no `try` around one sees it."""
        if not any(difference.kind == "exception" for difference in self.differences):
            return
        for node in self._passed:
            statement = next((a for a in self.facts.ancestors(node) if isinstance(a, ast.stmt)), None)
            if statement is not None and observed(self.facts, statement):
                raise NeedsPythonNumberError(f"a `try` sees the exceptions of `{shortened(statement)}`")

    @abstractmethod
    def follow(self, node: ast.expr) -> None: ...

    @abstractmethod
    def _target(self, target: ast.expr, dtype: Hashable) -> None: ...

    @abstractmethod
    def _in(self, facts: FunctionFacts, dtype: Hashable, *, rewrites: bool) -> Returned:
        """Asks the same in another function."""

    def _check_own(self, statement: ast.stmt) -> None:
        """Does a statement return from the function itself, not from one in it?"""
        inner = (a for a in (statement, *self.facts.ancestors(statement)) if isinstance(a, (*_DEFINITIONS, ast.Lambda)))
        if next(inner, self.facts.function) is not self.facts.function:
            raise NeedsPythonNumberError(f"`{shortened(statement)}` needs a Python number")

    def _returned(self, statement: ast.stmt, dtype: Hashable) -> None:
        """A number that a statement, or the function, returns."""
        self._check_own(statement)
        if self.returns_to is not None:
            self.returns_to(dtype)
            return
        self._to_calls(dtype, lambda uses, call: uses.follow(call))
        annotation = self.facts.function.returns
        if isinstance(annotation, ast.Name) and annotation.id in _NUMBERS:
            self.counterparts[annotation] = Counterpart(annotation, formula="torch.Tensor")

    def _to_calls(self, dtype: Hashable, ask: Callable[[Returned, ast.expr], None]) -> None:
        """Follows what the function returns to its calls; `ask` is given the uses there and the call."""
        around = self.callers | {self.facts.function}
        partial = self.is_partial or not self._always_returned()
        for call in _calls(self.facts):
            assert isinstance(call.node, ast.expr)
            if call.function in around:
                raise NeedsPythonNumberError(f"`{self.facts.function.name}` calls itself")
            uses = self._asked(call, call.node, dtype, around, ask, partial=partial)
            self.computes |= uses.computes
            self.differences += uses.differences
            self.jumps += uses.jumps
            if call.source is self.facts.source:
                joined(self.counterparts, uses.counterparts)
        says = f"`{self.facts.function.name}` returns a 0-d tensor instead of a Python number, to every call of it"
        self.differences.append(Difference("type", says))

    def _always_returned(self) -> bool:
        """Does each call give the number: at the only `return`, where nothing else may stand instead?"""
        inner = [n for n in nodes_in(self.facts.function) if isinstance(n, (*_DEFINITIONS, ast.Lambda))]
        inside = {n for one in inner if one is not self.facts.function for n in nodes_in(one)}
        returns = [n for n in nodes_in(self.facts.function) if isinstance(n, ast.Return) and n not in inside]
        if len(returns) != 1 or returns[0].value is None or self._may_be_number:
            return False
        passed = {*self._passed}
        followed = [n for n in nodes_in(returns[0].value) if isinstance(n, ast.expr) and n in passed]
        choices = [n for n in nodes_in(returns[0].value) if isinstance(n, (ast.IfExp, ast.BoolOp))]
        if any(n in nodes_in(choice) for choice in choices for n in followed):
            return False
        return not any(self._beside(n) for n in followed)

    @property
    @abstractmethod
    def _may_be_number(self) -> bool:
        """Is what was followed a Python number for some values, as `max(0.0, s)` is?"""

    def _asked(
        self,
        call: FunctionFacts,
        node: ast.expr,
        dtype: Hashable,
        around: frozenset[ast.AST],
        ask: Callable[[Returned, ast.expr], None],
        *,
        partial: bool,
    ) -> Returned:
        """The uses of what a call returns. They are written otherwise where they stand in the same file, and always get
        a tensor.
        """
        for rewrites in (False, True):
            uses = self._in(call, dtype, rewrites=rewrites)
            uses.callers, uses.is_partial = around, partial
            try:
                ask(uses, node)
            except NeedsPythonNumberError:
                if rewrites:
                    raise
                continue
            own = call.source is self.facts.source and "torch" in self.facts.names.values() and not partial
            others = uses.counterparts if not (own and self.rewrites) else ()
            written = next((n for n in (*uses.also, *others) if not _is_annotation(uses, n)), None)
            if written is not None:
                raise NeedsPythonNumberError(f"`{shortened(written)}` needs a Python number")
            return uses
        raise AssertionError("an attempt returns or raises")


def _is_annotation(uses: Returned, node: ast.expr) -> bool:
    around = (above for above in uses.facts.ancestors(node) if above is not uses.facts.function)
    return not any(isinstance(above, ast.stmt) for above in around)


def _calls(facts: FunctionFacts) -> Sequence[FunctionFacts]:
    """Every call of a function that the program makes in traced code. Raises where it may be called otherwise by code
    that counts on a number: by torch, a decorator, or under another name.
    """
    function, tree = facts.function, facts.source.tree
    if _is_property(facts):
        return _reads(facts)
    decorated = not all(_is_transparent(facts, decorator) for decorator in function.decorator_list)
    if decorated or isinstance(function, ast.AsyncFunctionDef) or _yields(function):
        raise NeedsPythonNumberError(f"`{function.name}` returns a Python number to who is not known")
    calls = {call.node: call for call in facts.calls() if isinstance(call.node, ast.Call)}
    if not calls or tree is None:
        raise NeedsPythonNumberError(f"`{function.name}` returns a Python number, and no call of it is in sight")
    if function.name in _CALLED and facts.owner is not None:
        if (other := _called_by_others(facts, facts.owner)) is not None:
            raise NeedsPythonNumberError(f"`{shortened(other)}` may get a Python number from `{function.name}`")
        return tuple(calls.values())
    if function.name.startswith("__"):
        raise NeedsPythonNumberError(f"`{function.name}` returns a Python number to Python")
    traced = {(n.lineno, n.col_offset) for n, call in calls.items() if call.source.path == facts.source.path}
    called = {node.func for node in nodes_in(tree) if isinstance(node, ast.Call)}
    for node in nodes_in(tree):
        name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
        if isinstance(node, _DEFINITIONS) and node.name == function.name and node is not function:
            raise NeedsPythonNumberError(f"there are several functions `{function.name}`")
        if name == function.name and node not in called and not _is_of_tensor(facts, node):  # type: ignore[arg-type]
            raise NeedsPythonNumberError(f"`{function.name}` is handed on, or bound anew")
        if (
            isinstance(node, ast.Call)
            and _names(node.func, function.name)
            and not _is_of_tensor(facts, node.func)
            and (node.lineno, node.col_offset) not in traced
        ):
            raise NeedsPythonNumberError(f"`{function.name}` is also called where nothing is traced")
    return tuple(calls.values())


def _called_by_others(facts: FunctionFacts, owner: ast.ClassDef) -> ast.AST | None:
    """What may call an object of a class besides the calls in sight: a hook, a container that calls what it holds, a
    class that derives from it.
    """
    tree = facts.source.tree
    assert tree is not None
    if has_hooks(tree):
        return owner
    for node in nodes_in(tree):
        match node:
            case ast.Call(func=function, args=args) if (qualified(facts, function) or "").rpartition(".")[
                2
            ] in _CALLING:
                if any(_names(n, owner.name) for a in args for n in nodes_in(a) if isinstance(n, ast.expr)):
                    return node
            case ast.ClassDef(bases=bases) if any(_names(base, owner.name) for base in bases):
                return node
            case ast.Attribute(attr="forward" | "__call__"):
                return node
    return None


def _last(facts: FunctionFacts, function: ast.expr) -> str:
    return (qualified(facts, function) or "").rpartition(".")[2]


def _is_transparent(facts: FunctionFacts, decorator: ast.expr) -> bool:
    """Does a decorator give on what the function returns, to those that call it alone?"""
    if isinstance(decorator, ast.Call) and not (decorator.args or decorator.keywords):
        decorator = decorator.func
    return qualified(facts, decorator) in _TRANSPARENT


def _is_property(facts: FunctionFacts) -> bool:
    match facts.function.decorator_list:
        case [ast.Name(id="property") as decorator]:
            return qualified(facts, decorator) == "builtins.property"
    return False


def _reads(facts: FunctionFacts) -> Sequence[FunctionFacts]:
    """Every place where the program asks for a property, all of it in traced code."""
    name, tree = facts.function.name, facts.source.tree
    reads = {call.node: call for call in facts.calls() if isinstance(call.node, ast.Attribute)}
    if not reads or tree is None or any(call.source.path != facts.source.path for call in reads.values()):
        raise NeedsPythonNumberError(f"`{name}` gives a Python number, and who asks for it is not in sight")
    traced = {(n.lineno, n.col_offset, n.end_col_offset) for n in reads}
    for node in nodes_in(tree):
        if isinstance(node, _DEFINITIONS) and node.name == name and node is not facts.function:
            raise NeedsPythonNumberError(f"there are several functions `{name}`")
        if isinstance(node, ast.Name) and node.id == name:
            raise NeedsPythonNumberError(f"`{name}` is handed on, or bound anew")
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and name in node.value.split("."):
            raise NeedsPythonNumberError(f"`{name}` may be asked for by its name as a text")
        asks = isinstance(node, ast.Attribute) and node.attr == name and not _is_of_tensor(facts, node)
        if asks and (node.lineno, node.col_offset, node.end_col_offset) not in traced:  # type: ignore[attr-defined]
            raise NeedsPythonNumberError(f"`{shortened(node)}` is also asked for where nothing is traced")
    return tuple(reads.values())


def _is_of_tensor(facts: FunctionFacts, node: ast.expr) -> bool:
    """Is an attribute one of a tensor, which has some of the same names?"""
    return isinstance(node, ast.Attribute) and isinstance(facts.value(node.value), Tensor)


def _names(node: ast.expr, name: str) -> bool:
    return (node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None) == name


def _yields(function: ast.AST) -> bool:
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in nodes_in(function))
