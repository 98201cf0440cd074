"""Does a function of the file only compute, by the statements of its body?"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of, parameters, writes
from graphmend.transforms.legality.names.replaced import is_lasting
from graphmend.transforms.legality.operations import names as known
from graphmend.transforms.legality.rows.kinds import Does, Kind, Kinds

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import FunctionInfo

#: methods that only compute, whatever tensor they are called on
_METHODS = known.ELEMENTWISE | known.ARITHMETIC | known.TESTS | known.REDUCTIONS | known.CASTS | known.METHODS
_BUILTINS = frozenset(
    f"builtins.{n}" for n in "len isinstance range enumerate zip reversed max min sum abs pow round list tuple".split()
)
_CONTEXTS = ("torch.no_grad", "torch.enable_grad")
#: what makes a tensor that nothing else has
_MAKERS = frozenset("zeros ones full empty zeros_like ones_like full_like empty_like clone".split())


@lru_cache(maxsize=64)
def only_computes(info: FunctionInfo) -> bool:
    """Does a function only bind local names, change what it made itself, branch, loop over what is there, and return,
    and does every call in it only compute? It is taken to be given tensors and numbers.
    """
    return _computes_within(info, ())


def _computes_within(info: FunctionInfo, callers: tuple[FunctionInfo, ...]) -> bool:
    """The same for a function that others call, which are being asked about."""
    node: ast.AST = info.node
    if isinstance(node, ast.Lambda):
        body = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.FunctionDef(name="lambda", args=node.args, body=[body], decorator_list=[])
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or info in callers:
        return False
    if any(isinstance(n, (ast.Global, ast.Nonlocal)) for n in nodes_in(node)):
        return False
    return _Body(info, node, (*callers, info)).computes(node.body)


class _Body(Kinds):
    """The expressions of a function's body."""

    def __init__(self, info: FunctionInfo, node: ast.FunctionDef, callers: tuple[FunctionInfo, ...]) -> None:
        super().__init__()
        self._module, self._callers = info.module, callers
        self._local, self._bound = locals_of(node), {*parameters(node)}
        self._own, self._tensors = (_made_here(node, make) for make in (_makes, _makes_tensor))
        self._apart = {*_taken_apart(node)}
        self._defined = set[str]()
        """Local names of functions that are defined in the body, which only compute where it does."""

    def computes(self, statements: Sequence[ast.stmt]) -> bool:
        return all(map(self._computes, statements)) and self.pure

    def _computes(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.Break() | ast.Continue() | ast.Return(value=None):
                return True
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda(args=given) as made) if (
                name not in self._bound and not (given.defaults or given.kw_defaults)
            ):
                self._local |= {*parameters(made)}
                self._defined.add(name)
                self.kind(made.body)
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name() | ast.Subscript() as target, value=value)
            ):
                self.kind(value)
                if isinstance(statement, ast.AugAssign):
                    return self._binds(target) and self._is_changed_alone(target)
                return self._binds(target)
            case ast.Expr(
                value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value], keywords=[])
            ) if name in self._own:
                self.kind(value)
            case ast.Return(value=ast.expr() as value):
                self.kind(value)
            case ast.If(test=test, body=body, orelse=orelse):
                self.kind(test)
                return self.computes(body) and self.computes(orelse)
            case ast.For(target=target, iter=each, body=body, orelse=orelse):
                self.kind(each)
                return self._binds(target) and self.computes(body) and self.computes(orelse)
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=entered, args=[], keywords=[]))], body=body):
                return self.qualified(entered) in _CONTEXTS and self.computes(body)
            case _:
                return False
        return True

    def _binds(self, target: ast.expr) -> bool:
        """Does a target bind local names, or change what was made here?"""
        match target:
            case ast.Name(id=name):
                self._bound.add(name)
                return name not in self._defined
            case ast.Tuple(elts=targets):
                return all(map(self._binds, targets))
            case ast.Subscript(slice=index):
                self.kind(index)
                return self._is_made_here(target)
        return False

    def _is_changed_alone(self, target: ast.expr) -> bool:
        """Does `+=` change what was made here? What lies in a list may be another's."""
        tensors = self._tensors if isinstance(target, ast.Subscript) else self._own
        changed = target.value if isinstance(target, ast.Subscript) else target
        return isinstance(changed, ast.Name) and changed.id in tensors

    def _is_made_here(self, target: ast.expr) -> bool:
        changed = target.value if isinstance(target, ast.Subscript) else target
        return isinstance(changed, ast.Name) and changed.id in self._own

    def leaf(self, node: ast.expr) -> Kind | None:
        match node:
            case ast.Name(id=name):
                self.pure &= name in self._local or self._is_data(name)
                return "const"
            case ast.Call(func=ast.Name(id="max" | "min"), keywords=[_, *_]):
                self.pure = False  # a key is called
                return "other"
            case ast.BoolOp(values=values):
                return self._all(*values)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._all(test, body, orelse)
            case ast.Call(func=ast.Name(id="float"), args=[ast.Constant()], keywords=[]):
                return "number" if self.qualified(node.func) == "builtins.float" else None
            case ast.ListComp(elt=elt, generators=[ast.comprehension(iter=each, ifs=tests, is_async=0)]):
                return self._all(each, *tests, elt)
        return None

    def _all(self, *parts: ast.expr) -> Kind:
        for part in parts:
            self.kind(part)
        return "const"

    def module(self, function: ast.expr, given: Kind) -> Does | None:
        name = self.qualified(function)
        if isinstance(function, ast.Name) and function.id in self._defined:
            return Does(True, "const")
        if name is not None and (name in _BUILTINS or name.startswith("math.")):
            return Does(True, "const")
        if isinstance(function, ast.Name) and (called := self._called(function.id)) is not None:
            return Does(_computes_within(called, self._callers), "const")
        if name is None and not (isinstance(function, ast.Attribute) and self._is_method(function)):
            return Does(False, "other")
        return None

    def _is_method(self, function: ast.Attribute) -> bool:
        """Is it a method of a tensor that only computes? That of a list changes it, and gives nothing to take apart."""
        return function.attr in _METHODS or (function.attr == "sort" and function in self._apart)

    def _is_data(self, name: str) -> bool:
        """Is a name that is not local none of the file, or one of a number, a tensor or a container of such? An object
        may do anything where it is read, run through or computed with.
        """
        bound = self._module.globals.get(name)
        if bound is None and name in writes(*self._module.source.tree.body if self._module.source.tree else ()):
            return False  # by more than an assignment
        return all(map(self._holds_data, bound or ()))

    def _holds_data(self, value: ast.expr) -> bool:
        match value:
            case ast.Constant():
                return True
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Dict(values=parts):
                return all(map(self._holds_data, parts))
            case ast.UnaryOp(operand=operand):
                return self._holds_data(operand)
            case ast.BinOp(left=left, right=right):
                return self._holds_data(left) and self._holds_data(right)
            case ast.Name(id=name):
                return name not in self._module.globals
            case ast.Attribute() | ast.Call(func=ast.Attribute()):
                named = value.func if isinstance(value, ast.Call) else value
                return (self._module.qualified(named) or "").rpartition(".")[0] in ("torch", "math")
        return False

    def _called(self, name: str) -> FunctionInfo | None:
        """The function of the file that a name stands for."""
        module = self._module
        lasting = name not in self._local and name not in module.redefined and is_lasting(name, module.source.tree)
        return module.functions.get(name) if lasting else None

    def qualified(self, function: ast.expr) -> str | None:
        if isinstance(function, ast.Name):
            bound = function.id in self._local or any(
                function.id in names for names in (self._module.globals, self._module.functions, self._module.classes)
            )
            return None if bound else self._module.imports.get(function.id, f"builtins.{function.id}")
        if isinstance(function, ast.Attribute) and isinstance(inner := function.value, (ast.Name, ast.Attribute)):
            if isinstance(inner, ast.Name) and (inner.id not in self._module.imports or inner.id in self._local):
                return None
            above = self.qualified(inner)
            return f"{above}.{function.attr}" if above else None
        return None


def _made_here(function: ast.FunctionDef, makes: Callable[[ast.expr], bool]) -> frozenset[str]:
    """The names of a function that are only ever bound to what it makes itself."""
    made, other = set[str](), {*parameters(function)}
    for node in nodes_in(function):
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                (made if makes(value) else other).add(name)
            case ast.Assign(targets=targets):
                other |= {n.id for t in targets for n in nodes_in(t) if isinstance(n, ast.Name)}
            case ast.For(target=target) | ast.comprehension(target=target) | ast.NamedExpr(target=target):
                other |= {n.id for n in nodes_in(target) if isinstance(n, ast.Name)}
    return frozenset(made - other)


def _taken_apart(function: ast.FunctionDef) -> Iterator[ast.expr]:
    """What is called where a result of several values is taken apart."""
    for node in nodes_in(function):
        match node:
            case (
                ast.Assign(targets=[ast.Tuple()], value=ast.Call(func=called))
                | ast.Subscript(value=ast.Call(func=called))
                | ast.Attribute(value=ast.Call(func=called))
            ):
                yield called


def _makes(value: ast.expr) -> bool:
    """Does an expression give a number, a list or a tensor that nothing else has?"""
    match value:
        case ast.Constant(value=bool() | int() | float()) | ast.List() | ast.ListComp() | ast.BinOp() | ast.Compare():
            return True
    return _makes_tensor(value)


def _makes_tensor(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in _MAKERS


@lru_cache(maxsize=64)
def runs_through(info: FunctionInfo) -> bool:
    """May a function run through what it is given, which an iterator would not survive?"""
    runs = (ast.For, ast.ListComp)
    named = {n.func.id for n in nodes_in(info.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return any(isinstance(n, runs) for n in nodes_in(info.node)) or not named <= {"len", "isinstance", "range", "float"}
