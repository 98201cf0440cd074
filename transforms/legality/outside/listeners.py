"""Code of a file that output runs: filters and handlers of loggers, streams, what shows warnings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: what takes an object or a function that output runs from now on
_TAKES = frozenset(
    {"addFilter", "addHandler", "setFormatter", "setLogRecordFactory", "setLoggerClass", "redirect_stdout"}
    | {"redirect_stderr"}
)
#: what output looks up each time, where something else may be put
_PLACES = frozenset({"stdout", "stderr", "showwarning", "formatwarning", "_showwarnmsg"})
#: how the names of the classes end that make such objects
_KINDS = ("Filter", "Handler", "Formatter", "Logger", "LoggerAdapter", "StringIO", "TextIOBase", "TextIOWrapper")


@answers("effects")
def told(facts: FunctionFacts) -> str | None:
    """What the function, one that calls it, or one that these call, reads, and code that output runs changes: while
    compiled that code runs when the graph does, and what is read while tracing is the old state.
    """
    changed = _changed(facts.source.tree)
    for function in _around(facts) if changed else ():
        own = locals_of(function)
        for node in nodes_in(function):
            if isinstance(node, ast.Name) and node.id in changed and node.id not in own:
                return node.id
    return None


def callers(facts: FunctionFacts) -> list[_Function]:
    """The functions in sight that lead to calls of this one."""
    found: list[_Function] = []
    waiting = [facts]
    while waiting:
        for caller in waiting.pop().calls():
            if caller.function not in found and caller.function is not facts.function:
                found.append(caller.function)
                waiting.append(caller)
    return found


def _around(facts: FunctionFacts) -> Iterator[_Function]:
    """The function, all in sight that lead to its calls, and those of the file that any of them names."""
    seen = {facts.function, *callers(facts)}
    tree = facts.source.tree
    named: dict[str, list[_Function]] = {}
    for node in nodes_in(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            named.setdefault(node.name, []).append(node)
    waiting = [*seen]
    while waiting:
        yield (function := waiting.pop())
        for node in nodes_in(function):
            for other in named.get(_last(node), ()) if isinstance(node, (ast.Name, ast.Attribute)) else ():
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)


@lru_cache(maxsize=2)
def _changed(tree: ast.Module | None) -> frozenset[str]:
    """Names of the module whose objects code that output runs changes, or that are such objects."""
    if tree is None:
        return frozenset()
    classes = {n.name: n for n in nodes_in(tree) if isinstance(n, ast.ClassDef)}
    functions = {n.name: n for n in nodes_in(tree) if isinstance(n, ast.FunctionDef)}
    listening: list[ast.AST] = [n for n in classes.values() if any(_last(b).endswith(_KINDS) for b in n.bases)]
    listening += (
        found for given in _given(tree) for found in (given, classes.get(_last(given)), functions.get(_last(given)))
        if isinstance(found, (ast.ClassDef, ast.FunctionDef, ast.Lambda))
    )  # fmt: skip
    found = {name for node in listening for name in _writes(node)}
    for node in nodes_in(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=made)):
                found |= {name} if classes.get(_last(made)) in listening else set()
    return frozenset(found)


def _given(tree: ast.Module) -> Iterator[ast.expr]:
    """What is put where output runs it: an object, its class where it is made there, a function."""
    for node in nodes_in(tree):
        match node:
            case ast.Call(func=taker, args=[given, *_]) if _last(taker) in _TAKES:
                yield given.func if isinstance(given, ast.Call) else given
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=given) if attr in _PLACES:
                yield given.func if isinstance(given, ast.Call) else given
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str() as attr), given]) if (
                attr in _PLACES
            ):
                yield given


def _writes(code: ast.AST) -> Iterator[str]:
    """The names whose objects code may change: it stores in them, or calls a method of theirs, or binds them."""
    for node in nodes_in(code):
        match node:
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                yield from names
            case ast.Attribute(value=owner, ctx=ast.Store()) | ast.Subscript(value=owner, ctx=ast.Store()):
                yield _root(owner)
            case ast.Call(func=ast.Attribute(value=owner)):
                yield _root(owner)
            case ast.AugAssign(target=ast.Name(id=name)):
                yield name


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
