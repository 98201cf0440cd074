"""Decorators: the function that they return, and those that keep TorchDynamo from tracing a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from graphmend.analysis.interpreter.calls.gradient_mode import switches_gradients_off
from graphmend.analysis.interpreter.walk.statements import Walker
from graphmend.analysis.lattice.arguments import Arguments
from graphmend.analysis.lattice.values import Value
from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Function
from graphmend.analysis.resolution.names import named
from graphmend.analysis.syntax.nodes import statements_of
from graphmend.analysis.syntax.traversal import walk

if TYPE_CHECKING:
    from graphmend.analysis.interprocedural.interface import Analysis

#: a function under one of these is called as it is; Dynamo does not trace its body (torch 2.13)
OPAQUE = frozenset({
    "torch.library.custom_op", "torch.compiler.allow_in_graph", "torch._dynamo.allow_in_graph",
    "triton.jit", "numba.jit", "numba.njit", "torch.compiler.assume_constant_result",
    "torch._dynamo.assume_constant_result", "torch._dynamo.nonstrict_trace", "torch.library.triton_op",
    "torch._dynamo.decorators.leaf_function",
})  # fmt: skip
#: those of them that ask something of arguments and results, with the name by which rules know their calls
OPAQUE_CALLS = {
    "torch._dynamo.nonstrict_trace": "torch._dynamo.nonstrict_trace",
    "torch._dynamo.decorators.leaf_function": "torch._dynamo.decorators.leaf_function",
    "torch.compiler.assume_constant_result": "torch._dynamo.assume_constant_result",
    "torch._dynamo.assume_constant_result": "torch._dynamo.assume_constant_result",
}
DISABLED = frozenset({"torch.compiler.disable", "torch._dynamo.disable", "torch._disable_dynamo"})
#: what a decorator must mention before it is worth a walk: operations of torch, output
_TELLING = re.compile(
    r"\btorch\.(?!nn\.Module|compiler|jit|fx|onnx)\w+\(|\bprint\(|\.(?:item|tolist|any|all|max|dumps|debug|info|warning)\("
    r"|\btime\.\w+\("
)
#: functions that hand the decorated one on, one to the other
_MOST_HANDED_ON = 4
#: where an expression stands that no function holds
MODULE_SCOPE = ast.Lambda(ast.parse("lambda: 0", mode="eval").body.args, ast.Constant(0))  # type: ignore[attr-defined]


def wrapped(session: Analysis, info: FunctionInfo) -> Function | None:
    """The function that the decorators return, if it is another one whose source is available."""
    value: Value = Function(info)
    for node in reversed(info.decorators):
        name = named(session, info.module, node.func if isinstance(node, ast.Call) else node)
        if not isinstance(name, Function) or _looks_transparent(name.info):
            continue
        maker = session.reading.evaluate(info.module, node)
        if isinstance(maker, Function) and not _gives_back(session, maker.info, int(maker.bound is not None)):
            with session.stack.region(traced=False):
                made = _silent_call(session, maker, (value,), info.module)
            value = made if isinstance(made, Function) else value
    assert isinstance(value, Function)
    return value if value.info is not info else None


def gradients_off(info: FunctionInfo) -> bool:
    """Whether the innermost decorator that has a say in it switches gradients off for certain."""
    for node in reversed(info.decorators):
        name = info.module.qualified(node.func if isinstance(node, ast.Call) else node)
        if (off := switches_gradients_off(name, node)) is not None:
            return off
    return False


def _silent_call(session: Analysis, function: Function, args: Arguments, module: ModuleInfo) -> Value:
    w = Walker(session, FunctionInfo(MODULE_SCOPE, module), {}, None, session.stack.depth)
    w.silent = 1
    return session.enter(function, args, {}, w, MODULE_SCOPE)


def _looks_transparent(decorator: FunctionInfo) -> bool:
    """Whether a decorator's text has nothing that a rule could judge: then it is ignored."""
    if decorator.is_passthrough is None:
        text = decorator.source.segment(decorator.source.span(decorator.node))
        decorator.is_passthrough = _TELLING.search(text) is None
    return decorator.is_passthrough


def _gives_back(session: Analysis, function: FunctionInfo, position: int, handed_on: int = 0) -> bool:
    """Whether a call gives back its argument at `position`, a function or a class, by its text: whatever else such a
    decorator does, write documentation or enter functions into a table, need not be evaluated then."""
    node = function.node
    if not isinstance(node, ast.FunctionDef) or function.decorators or position >= len(function.parameters):
        return False
    session.summaries.results_memoised.add(function)  # an edit of it reaches what it decorates
    name = function.parameters[position].arg
    if any(isinstance(n, (ast.Yield, ast.YieldFrom)) or _binds(n, name) for n in walk(node)):
        return False
    results: list[ast.expr | None] = []
    if _falls_through(node.body, name, results) or not results:
        return False
    for value in results:
        if isinstance(value, ast.Name) and value.id == name:
            continue
        if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name) or handed_on == _MOST_HANDED_ON:
            return False
        at = next((i for i, a in enumerate(value.args) if isinstance(a, ast.Name) and a.id == name), None)
        if at is None or any(isinstance(a, ast.Starred) for a in value.args[:at]):
            return False
        called = _meant(session, function, value.func)
        if called is None or not _gives_back(session, called, at, handed_on + 1):
            return False
    return True


def _falls_through(body: Sequence[ast.stmt], name: str, results: list[ast.expr | None]) -> bool:
    """Whether a block may end without a return, where `name` is a function or a class; adds what is returned."""
    for statement in body:
        if isinstance(statement, ast.Return):
            results.append(statement.value)
            return False
        if isinstance(statement, ast.Raise):
            return False
        if isinstance(statement, ast.If):
            there = _is_there(statement.test, name)
            in_body = there is not False and _falls_through(statement.body, name, results)
            in_rest = there is not True and _falls_through(statement.orelse, name, results)
            if not in_body and not in_rest:
                return False
        else:
            results += [inner.value for inner in statements_of([statement]) if isinstance(inner, ast.Return)]
    return True


def _is_there(test: ast.expr, name: str) -> bool | None:
    """The answer of a condition that asks whether a function or class was given; None for any other condition."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        answer = _is_there(test.operand, name)
        return None if answer is None else not answer
    if isinstance(test, ast.Call) and len(test.args) == 1 and isinstance(test.func, ast.Name):
        return _is_there(test.args[0], name) if test.func.id == "callable" else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        if test.comparators[0].value is not None or _is_there(test.left, name) is None:
            return None
        return isinstance(test.ops[0], (ast.IsNot, ast.NotEq))
    return True if isinstance(test, ast.Name) and test.id == name else None


def _meant(session: Analysis, function: FunctionInfo, callee: ast.Name) -> FunctionInfo | None:
    """The function that a name means in another one: one that stands in it or around it, else one of the module."""
    around: FunctionInfo | None = function
    while around is not None:
        if any(p.arg == callee.id for p in ast.walk(around.node.args) if isinstance(p, ast.arg)):
            return None
        bound = [n for n in walk(around.node) if n is not around.node and _binds(n, callee.id)]
        if bound:
            inner = bound[0] if len(bound) == 1 else None
            return session.inner_function(inner, around) if isinstance(inner, ast.FunctionDef) else None
        around = around.outer
    value = named(session, function.module, callee)
    return value.info if isinstance(value, Function) and value.bound is None else None


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node gives a name a value."""
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return any((alias.asname or alias.name.partition(".")[0]) == name for alias in node.names)
    if isinstance(node, ast.MatchMapping):
        return node.rest == name
    return isinstance(node, _NAMING) and node.name == name


#: nodes that give a value to their `name`
_NAMING = (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)
