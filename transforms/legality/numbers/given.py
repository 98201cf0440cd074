"""Whether a number is one whoever runs the code: what a function is given, code of other files may give otherwise."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from graphmend.analysis.facts.function_facts import above, parents_in
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import parameters
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.legality.context import other_files_call
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = (ast.FunctionDef, ast.AsyncFunctionDef)
#: calls that give ints or floats, and nothing else, whatever they are given
_NUMBERS = frozenset({"builtins.int", "builtins.float", "builtins.len", "builtins.range", "builtins.id"})
_PASS_ON = frozenset({
    "builtins.abs", "builtins.max", "builtins.min", "builtins.sum", "builtins.round", "builtins.enumerate",
    "builtins.zip", "builtins.reversed", "builtins.sorted", "builtins.list", "builtins.tuple", "builtins.set",
})  # fmt: skip


@answers("numbers")
def given_from_outside(facts: FunctionFacts, node: ast.expr, function: _Function | None) -> ast.AST | None:
    """The part of what a number of `function` is computed from that code of another file may give otherwise, as a
    tensor: a parameter, an attribute or a call; None where there is no such thing.
    """
    tree = facts.source.tree
    assert tree is not None
    parents = parents_in(tree)
    if function is None or other_files_call(parents, function) is None:
        return None
    around = [function, *(n for n in above(parents, function) if isinstance(n, _Scope))]
    return _Origin(facts.within(function), around).of(node)


class _Origin:
    """What expressions of functions inside each other are computed from."""

    def __init__(self, facts: FunctionFacts, around: list[_Function]) -> None:
        self._facts = facts
        self._around = around
        self._seen: set[str] = set()

    def of(self, node: ast.AST) -> ast.AST | None:
        """The first part that comes from outside."""
        match node:
            case ast.Name(id=name):
                return self._of_name(node, name)
            case ast.Call(func=func):
                callee = qualified(self._facts, func) or ""
                if callee in _NUMBERS or callee.startswith("math."):
                    return None
                if callee not in _PASS_ON:
                    return node
                parts: list[ast.AST] = [*node.args, *(k.value for k in node.keywords)]
            case ast.Attribute():
                return node
            case ast.Lambda() | ast.Await() | ast.Yield() | ast.YieldFrom():
                return node
            case _:
                parts = [n for n in ast.iter_child_nodes(node) if isinstance(n, (ast.expr, ast.comprehension))]
        return next((found for part in parts if (found := self.of(part)) is not None), None)

    def _of_name(self, node: ast.AST, name: str) -> ast.AST | None:
        if name in self._seen:
            return None
        self._seen.add(name)
        for function in self._around:
            if name in parameters(function):
                return node
            values = _values(function, name)
            if values is not None:
                return next((found for value in values if (found := self.of(value)) is not None), None)
        return None  # of the module: every call in sight was executed with it


def _values(function: _Function, name: str) -> list[ast.AST] | None:
    """The expressions that a variable of a function is set from; None where it has no such variable. A statement that
    sets it in another way stands for itself.
    """
    found: list[ast.AST] = []
    for node in nodes_in(function):
        match node:
            case ast.Global(names=names) | ast.Nonlocal(names=names) if name in names:
                return None
            case ast.Assign(targets=targets, value=value) if any(_binds(t, name) for t in targets):
                found.append(value)
            case ast.AugAssign(target=target, value=value) if _binds(target, name):
                found.append(value)
            case ast.AnnAssign(target=target, value=ast.expr() as value) if _binds(target, name):
                found.append(value)
            case ast.NamedExpr(target=target, value=value) if _binds(target, name):
                found.append(value)
            case ast.For(target=target, iter=value) | ast.comprehension(target=target, iter=value) if _binds(
                target, name
            ):
                found.append(value)
            case ast.withitem(optional_vars=ast.expr() as target, context_expr=value) if _binds(target, name):
                found.append(value)
    return found or None


def _binds(target: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in nodes_in(target))
