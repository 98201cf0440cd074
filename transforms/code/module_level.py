"""What stands, or can stand, at a module's top level above a definition."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeGuard

from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.expression_text import Code
from graphmend.transforms.code.liveness import fresh, locals_of, reads, writes
from graphmend.transforms.code.positions import begins_line, first_position
from graphmend.transforms.code.qualified_names import qualified
from graphmend.transforms.fix import TextEdit

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts


def names_bound(statements: Iterable[ast.stmt]) -> set[str]:
    """Every name that statements at a module's top level bind, in whichever block, and those that their functions bind
    as globals. `*` stands for what a star import brings.
    """
    statements = list(statements)
    functions = [n for s in statements for n in nodes_in(s) if isinstance(n, ast.Global)]
    return writes(*statements) | {name for node in functions for name in node.names}


def is_made_once(facts: FunctionFacts, node: ast.Call) -> bool:
    """Is a call one whose result is the same object each time, and can it stand at the top of the module?"""
    top = top_statement(facts)
    if qualified(facts, node.func) != "logging.getLogger" or local_name_in(facts, node) is not None:
        return False
    return top is not None and begins_line(facts.source, top)


def bound_once(facts: FunctionFacts, node: ast.Call, wanted: str) -> tuple[str, list[TextEdit]]:
    """A name for such a call, and the edit that binds it above the function."""
    top = top_statement(facts)
    assert top is not None
    name = fresh(facts, f"_{wanted}")
    return name, [insert_above(facts, top, f"{name} = {Code(facts.source).line(node)}")]


def top_statement(facts: FunctionFacts) -> ast.stmt | None:
    """The module-level statement around the function."""
    tree = facts.source.tree
    assert tree is not None
    return next((s for s in tree.body if any(n is facts.function for n in nodes_in(s))), None)


def insert_above(facts: FunctionFacts, top: ast.stmt, text: str) -> TextEdit:
    """New module-level code above a definition, the two blank lines kept; one stands between imports and a value."""
    newline = "\r\n" if "\r\n" in facts.source.text else "\n"
    line = first_position(facts.source, top)[0]
    tree, lines = facts.source.tree, facts.source.text.splitlines()
    assert tree is not None
    before = tree.body[tree.body.index(top) - 1] if top in tree.body[1:] else None
    empty = (
        before is not None
        and before.end_lineno == line - 3
        and not any(one.strip() for one in lines[line - 3 : line - 1])
    )
    value = not text.startswith(("def ", "class ", "@", "async "))
    first = line - 1 if empty and value and isinstance(before, (ast.Import, ast.ImportFrom)) else line
    return TextEdit(Span(first, 0, line, 0), f"{text}{newline}{newline}{newline}")


def local_name_in(facts: FunctionFacts, node: ast.expr) -> str | None:
    """A name that an expression reads and that is local to the function."""
    own = {a.arg for n in nodes_in(node) if isinstance(n, ast.Lambda) for a in n.args.args}
    return next(iter(sorted((reads(node) & locals_of(facts.function)) - own)), None)


def changing_global(facts: FunctionFacts, top: ast.stmt, node: ast.AST) -> str | None:
    """A name of the module that code reads and that is not known to be the same at `top` and ever after: bound once
    above it, by an import, a definition or a constant.
    """
    tree = facts.source.tree
    assert tree is not None
    own = {a.arg for n in nodes_in(node) if isinstance(n, ast.arg) for a in (n,)} | writes(node)
    for name in sorted(reads(node) - own):
        bound = [n for n in nodes_in(tree) if _binds(n, name)]
        if not bound and hasattr(builtins, name):
            continue
        if len(bound) != 1 or bound[0].lineno >= top.lineno or not _is_lasting(bound[0], tree):
            return name
    return None


def _binds(node: ast.AST, name: str) -> TypeGuard[ast.stmt | ast.expr | ast.arg | ast.alias]:
    """Does a node give a meaning to a name, wherever it stands?"""
    match node:
        case ast.Name(id=bound, ctx=ast.Store() | ast.Del()):
            return bound == name
        case ast.alias(name=imported, asname=alias):
            return (alias or imported.partition(".")[0]) == name
        case ast.FunctionDef(name=bound) | ast.AsyncFunctionDef(name=bound) | ast.ClassDef(name=bound):
            return bound == name
    return False


def _is_lasting(node: ast.AST, tree: ast.Module) -> bool:
    """Is what a name is bound to at the top level an import, a definition or a constant?"""
    if isinstance(node, ast.alias):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node in tree.body
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and statement.targets == [node]:
            return all(
                isinstance(n, (ast.Constant, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load, ast.BinOp, ast.operator))
                for n in nodes_in(statement.value)
            )
    return False
