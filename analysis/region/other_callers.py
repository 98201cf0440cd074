"""The functions that are traced where something in sight calls them, and that code which is not traced calls too."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.lattice.values import UNKNOWN, Value
from graphmend.analysis.program.definitions import FunctionInfo, ModuleInfo
from graphmend.analysis.program.entities import Function, Instance
from graphmend.analysis.region.region import Region, Root

if TYPE_CHECKING:
    from graphmend.analysis.resolution.interface import ProgramView

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_REGION = Region("assumed", None, None)


class _Mention(NamedTuple):
    """A name or an attribute in code that is not traced, and the call of it, if it is called there."""

    name: str
    is_attribute: bool
    call: ast.Call | None
    scope: FunctionInfo | None


def called_by_others(session: ProgramView, module: ModuleInfo, traced: Collection[FunctionInfo]) -> Iterator[Root]:
    """The functions and methods among `traced` that other code of their module may mean, its top level or functions
    that are not traced: with what that passes to them, as far as it is known."""
    own = [info for info in dict.fromkeys(traced) if info.module is module and info.outer is None]
    if module.source.tree is None or not own:
        return
    mentions = list(_outside(module, {info.node for info in own}))
    for info in own:
        bound = None if info.owner is None or info.is_static else Instance(info.owner)
        for given in dict.fromkeys(
            None if one.call is None else _arguments(session, info, one)
            for one in mentions
            if one.name == info.name and one.is_attribute == (info.owner is not None)
        ):
            yield Root(Function(info, bound), _REGION, given)


def for_any_caller(info: FunctionInfo) -> Root:
    """A function or method with arguments of which nothing is known but what is written at its parameters."""
    function = info
    while function.outer is not None:
        function = function.outer
    bound = None if function.owner is None or function.is_static else Instance(function.owner)
    return Root(Function(function, bound), _REGION, None)


def _arguments(session: ProgramView, info: FunctionInfo, mention: _Mention) -> tuple[Value, ...] | None:
    """The arguments of a call by position, behind the receiver; None where they are not told apart."""
    call = mention.call
    names = [p.arg for p in info.parameters][info.owner is not None and not info.is_static :]
    given = {} if call is None else dict(zip(names, call.args, strict=False))
    given |= {} if call is None else {k.arg: k.value for k in call.keywords if k.arg is not None}
    if call is None or any(isinstance(a, ast.Starred) for a in call.args) or not given.keys() <= {*names}:
        return None
    read = session.reading.evaluate_in
    return tuple(
        read(info.module, mention.scope, given[name])
        if name in given
        else read(info.module, None, info.defaults[name])
        if name in info.defaults
        else UNKNOWN
        for name in names
    )


def _outside(module: ModuleInfo, traced: Collection[ast.AST]) -> Iterator[_Mention]:
    """What is mentioned in none of the traced functions' bodies, nor in decorators."""
    scopes: dict[ast.AST, FunctionInfo] = {}
    scopes.update((info.node, info) for info in module.all_functions())
    assert module.source.tree is not None
    todo: list[tuple[ast.AST, FunctionInfo | None, ast.Call | None]] = [(module.source.tree, None, None)]
    while todo:
        node, scope, call = todo.pop()
        if node in traced:
            continue
        if isinstance(node, ast.Name):
            yield _Mention(node.id, False, call, scope)
        elif isinstance(node, ast.Attribute):
            yield _Mention(node.attr, True, call, scope)
        scope = scopes.get(node) or scope
        decorators = node.decorator_list if isinstance(node, _DEFINITIONS) else []
        for child in ast.iter_child_nodes(node):
            if child not in decorators:
                todo.append((child, scope, node if isinstance(node, ast.Call) and child is node.func else None))
