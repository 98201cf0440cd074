"""The code of a mended text, which shows no more of itself than the file's own code: its lines, and its globals.

Knows two texts of one file. An import that the new text adds to the top of the module moves into the functions that
use it: a module's namespace, `dir()` and `from module import *` are what the file says, nothing is imported before the
program would do it, and a function that is pickled with its code brings the import along.

Before:  import graphmend.runtime
         def f(x):
             graphmend.runtime.emit(print, x)
After:   def f(x):
             import graphmend.runtime
             graphmend.runtime.emit(print, x)
Legal when: nothing else binds the name. A function that looks at its own names, and what runs outside functions, asks
    `__import__` where the name is read.
"""

from __future__ import annotations

import ast
from collections import Counter
from types import CodeType
from typing import TypeVar

from graphmend.importer.code import line_numbers
from graphmend.transforms.code.liveness import locals_of, parameters
from graphmend.transforms.code.module_level import names_bound

Function = TypeVar("Function", ast.FunctionDef, ast.AsyncFunctionDef)
_OWN_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""Functions that show, or use, the local names of the one that calls them."""


def compiled(path: str, original: str, mended: str) -> CodeType:
    """The code of `mended` for the file at `path`, which holds `original`. Both texts end their lines in LF."""
    return compile(tree(original, mended), path, "exec", dont_inherit=True)


def tree(original: str, mended: str) -> ast.Module:
    """The tree of `mended`, placed in the lines of `original`, its new imports where they are used."""
    found = line_numbers.parse(original, mended)
    added = _added(ast.parse(original), found)
    others = names_bound([statement for statement in found.body if statement not in added])
    moved = {name: alias for statement in added for name, alias in _names(statement).items() if name not in others}
    found.body = [s for s in found.body if s not in added or not _names(s).keys() <= moved.keys()]
    if moved:
        found = _Moving(moved).visit(found)
    return found


def _added(before: ast.Module, after: ast.Module) -> list[ast.stmt]:
    """The imports at the top of a text that another one lacks."""
    known = Counter(ast.dump(s) for s in before.body if isinstance(s, ast.Import))
    added: list[ast.stmt] = []
    for statement in after.body:
        if isinstance(statement, ast.Import):
            known[ast.dump(statement)] -= 1
            if known[ast.dump(statement)] < 0:
                added.append(statement)
    return added


def _names(statement: ast.stmt) -> dict[str, ast.alias]:
    assert isinstance(statement, ast.Import)
    return {alias.asname or alias.name.partition(".")[0]: alias for alias in statement.names}


class _Moving(ast.NodeTransformer):
    """Gives functions the imports whose names they read as globals."""

    def __init__(self, moved: dict[str, ast.alias]) -> None:
        self._moved = moved
        self._needed: set[str] | None = None
        """The names that the function around reads so far; None where it gets no imports."""
        self._local: frozenset[str] = frozenset()

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._moved or node.id in self._local:
            return node
        if self._needed is None:
            return self._asked(node)
        self._needed.add(node.id)
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        around, self._local = self._local, self._local | {*parameters(node)}
        self.generic_visit(node)
        self._local = around
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return self._function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return self._function(node)

    def _function(self, node: Function) -> Function:
        body, node.body = node.body, []
        self.generic_visit(node)  # decorators, defaults and annotations belong to the scope around
        node.body = body
        around = self._needed, self._local
        self._needed, self._local = None if _looks_at_names(node) else set(), self._local | locals_of(node)
        node.body = [self.visit(statement) for statement in body]
        if self._needed:
            self._import(node, self._needed)
        self._needed, self._local = around
        return node

    def _asked(self, name: ast.Name) -> ast.expr:
        alias = self._moved[name.id]
        more = "" if alias.asname is None else ", None, None, ('__name__',)"
        asked = ast.parse(f"__import__({alias.name!r}{more})", mode="eval").body
        for node in ast.walk(asked):
            ast.copy_location(node, name)
        return asked

    def _import(self, function: ast.FunctionDef | ast.AsyncFunctionDef, names: set[str]) -> None:
        """Puts the imports in front of a function's first statement, in its line."""
        first = 0 if ast.get_docstring(function, clean=False) is None else 1
        place = function.body[first]
        line = min([place.lineno, *(each.lineno for each in getattr(place, "decorator_list", ()))])
        for name in sorted(names):
            where = {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}
            function.body.insert(first, ast.Import([self._moved[name]], **where))


def _looks_at_names(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(n, ast.Name) and n.id in _OWN_NAMES for s in function.body for n in ast.walk(s))
