"""Whether layers and functions are told to work in place, or to change the table that they read."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from graphmend.analysis.syntax import traversal
from graphmend.transforms.code.qualified_names import constant

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def works_in_place(call: ast.Call, position: int | None) -> bool:
    """Is `inplace` given, and not as a plain False?"""
    if position is None:
        return False
    flag = given(call, "inplace", position)
    return flag is not None and constant(flag) is not False


def given(call: ast.Call, keyword: str, position: int | None) -> ast.expr | None:
    """The argument of a call, by keyword or by position; None where it is absent or None."""
    if position is None:
        return None
    found = next((k.value for k in call.keywords if k.arg == keyword), None)
    if found is None and len(call.args) > position:
        found = call.args[position]
    if found is None and any(isinstance(a, ast.Starred) for a in call.args):
        return call
    return None if isinstance(found, ast.Constant) and found.value is None else found


def is_constructed_without(facts: FunctionFacts, function: ast.expr, keyword: str, position: int) -> bool:
    """Is a layer made without a flag, in every assignment of its name in the file?"""
    made = constructed(facts, function)
    calls = [v for v in made if isinstance(v, ast.Call) and all(k.arg for k in v.keywords)]
    if not made or len(calls) < len(made):
        return False
    return all((flag := given(c, keyword, position)) is None or constant(flag) is False for c in calls)


def constructed(facts: FunctionFacts, function: ast.expr) -> list[ast.expr]:
    """What a layer is assigned from, wherever the file does."""
    if isinstance(function, ast.Call):
        return [function]
    tree = facts.source.tree
    if tree is None:
        return []
    text = ast.unparse(function)
    return _assigned(_owner(facts, tree) if text.startswith("self.") else tree).get(text, [])


@lru_cache(maxsize=64)
def _assigned(around: ast.AST) -> dict[str, list[ast.expr]]:
    """All that is assigned anywhere in a class or a file, by the text of its target."""
    found: dict[str, list[ast.expr]] = {}
    for node in traversal.statements(around):
        match node:
            case ast.Assign(targets=targets, value=value):
                for text in dict.fromkeys(map(ast.unparse, targets)):
                    found.setdefault(text, []).append(value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                found.setdefault(ast.unparse(target), []).append(value)
    return found


def _owner(facts: FunctionFacts, tree: ast.Module) -> ast.AST:
    """The innermost class around the function."""
    classes = (n for n in traversal.statements(tree) if isinstance(n, ast.ClassDef) and facts.function in n.body)
    return next(classes, tree)
