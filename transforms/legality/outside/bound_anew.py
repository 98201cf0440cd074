"""Attributes and names of the module that an expression reads, and code that may bind them anew, in calls as well."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import locals_of
from graphmend.transforms.legality.effects import effects
from graphmend.transforms.questions import answers

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


@answers("effects")
def bound_anew(facts: FunctionFacts, read: ast.AST, code: Iterable[ast.AST]) -> str | None:
    """An attribute or a name from outside of the function that is read, and that code may bind to something else: it
    does, or it calls what is more than a computation, and some function of the file does.
    """
    wanted = {*_read_from_outside(facts, read)}
    if not wanted:
        return None
    nodes = [n for part in code for n in nodes_in(part)]
    found = wanted & {*_bound(nodes)}
    if not found and any(isinstance(n, ast.Call) and effects(facts, n) for n in nodes):
        found = wanted & {*_bound_in_functions(facts.source.tree)}
    return min(found, default=None)


def _read_from_outside(facts: FunctionFacts, read: ast.AST) -> Iterator[str]:
    own = locals_of(facts.function)
    for node in nodes_in(read):
        if isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Name) and node.id not in own:
            yield node.id


def _bound(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            yield from node.names


def _bound_in_functions(tree: ast.AST | None) -> Iterator[str]:
    """What functions of a file bind of objects and of the module, but for those that make an object."""
    functions = (n for n in nodes_in(tree or ast.Pass()) if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)))
    for function in functions:
        if function.name != "__init__":
            parts = (n for n in nodes_in(function) if isinstance(n, (ast.Attribute, ast.Global, ast.Nonlocal)))
            yield from _bound(parts)
