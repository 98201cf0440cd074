"""Functions of the program through which picked elements go: does one work on each element by itself?"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from graphmend.analysis.program.entities import Function
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.legality.operations.derivatives import SINGULAR_AT_ONE
from graphmend.transforms.legality.outside.pure_bodies import only_computes

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

#: is each element of a value computed from the one at its own place in the given ones
OneByOne = Callable[["FunctionFacts", ast.expr, Container[ast.expr]], bool]


def own_function(facts: FunctionFacts, call: ast.Call) -> tuple[ast.FunctionDef, dict[str, ast.expr]] | None:
    """The function of the file that is called, where it only computes, and the arguments by parameter."""
    function = facts.value(call.func)
    if not isinstance(function, Function) or function.bound is not None or not only_computes(function.info):
        return None
    node, tree = function.info.node, facts.source.tree
    if not isinstance(node, ast.FunctionDef) or tree is None or not any(n is node for n in nodes_in(tree)):
        return None
    given = _given(node, call)
    called = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in nodes_in(node)}
    if given is None or called & SINGULAR_AT_ONE:  # which stands in for what is not picked
        return None
    return node, given


def works_through(facts: FunctionFacts, call: ast.Call, picks: Container[ast.expr], judge: OneByOne) -> bool:
    """Does a function of the file that is given `picks`, or what is computed of them, only compute, and each element of
    what it gives from the element at its own place?
    """
    if (found := own_function(facts, call)) is None:
        return False
    node, given = found
    names = {name for name, value in given.items() if any(n in picks for n in _expressions(value))}
    if not all(judge(facts, given[name], picks) for name in names):
        return False
    return _body(facts.within(node), node, names, judge)


def _given(node: ast.FunctionDef, call: ast.Call) -> dict[str, ast.expr] | None:
    """The arguments by parameter; None where that is not plain."""
    if node.args.vararg or node.args.kwarg or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if any(k.arg is None for k in call.keywords):
        return None
    names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
    return dict(zip(names, call.args, strict=False)) | {k.arg or "": k.value for k in call.keywords}


def _body(facts: FunctionFacts, node: ast.FunctionDef, names: set[str], judge: OneByOne) -> bool:
    for statement in node.body:
        match statement:
            case ast.Expr(value=ast.Constant()):
                continue
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                read = _read(value, names)
                if read and not judge(facts, value, read):
                    return False
                names = names | {name} if read else names - {name}
            case ast.Return(value=ast.expr() as value):
                return bool(read := _read(value, names)) and judge(facts, value, read)
            case _:
                return False
    return False


def _read(value: ast.expr, names: set[str]) -> set[ast.expr]:
    return {n for n in _expressions(value) if isinstance(n, ast.Name) and n.id in names}


def _expressions(node: ast.AST) -> list[ast.expr]:
    return [n for n in nodes_in(node) if isinstance(n, ast.expr)]
