"""Names for what new code refers to: the file's own import where it has one, else one new import in the file's
style.
"""

from __future__ import annotations

import ast
from functools import cached_property
from typing import TYPE_CHECKING

from graphmend.analysis.syntax.span import Span
from graphmend.transforms.code.liveness import locals_of, writes
from graphmend.transforms.fix import TextEdit

if TYPE_CHECKING:
    from graphmend.analysis.facts.function_facts import FunctionFacts
    from graphmend.analysis.syntax.source import Source


class Imports:
    """Hands out names inside one function, and remembers which imports they need."""

    def __init__(self, facts: FunctionFacts) -> None:
        self.facts = facts
        self._new: dict[str, str] = {}  # module -> the name it is bound to

    @cached_property
    def _hidden(self) -> set[str]:
        return _shadows(self.facts)

    def name(self, qualified: str, module: str = "torch") -> str:
        """How to spell `qualified`, an attribute path below `module`, at the place of the finding."""
        known = {q: n for n, q in reversed(list(self.facts.names.items())) if n not in self._hidden}
        parent = qualified
        while parent.startswith(module):
            if parent in known:
                return known[parent] + qualified[len(parent) :]
            parent = parent.rpartition(".")[0]
        return self._add(module) + qualified[len(module) :]

    def _add(self, module: str) -> str:
        if module not in self._new:
            first = module.partition(".")[0]
            taken = first in self._hidden or _bound(self.facts.source, first)
            if not taken and _imports(self.facts.source, module):
                return module
            self._new[module] = "_" + module.replace(".", "_") if taken else module
        return self._new[module]

    def edits(self) -> list[TextEdit]:
        """The imports to add."""
        return [insertion(self.facts.source, module, bound) for module, bound in self._new.items()]


def _shadows(facts: FunctionFacts) -> set[str]:
    """Names that do not mean the module's binding at the place of the finding."""
    function, hidden = facts.function, locals_of(facts.function)
    tree = facts.source.tree
    first, last = function.lineno, function.end_lineno or function.lineno
    stack: list[ast.AST] = [tree] if tree is not None else []
    while stack:  # down the statements that hold the function's lines
        for node in ast.iter_child_nodes(stack.pop()):
            if isinstance(node, ast.stmt) and node.lineno <= first and last <= (node.end_lineno or node.lineno):
                stack.append(node)
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node is not function:
                    hidden |= locals_of(node)
    return hidden


def _bound(source: Source, name: str) -> bool:
    """Does anything but `import name` give a meaning to a module's name, or may it?"""
    if source.tree is None:
        return False
    for statement in source.tree.body:
        own = isinstance(statement, ast.Import) and all(
            alias.asname is None for alias in statement.names if alias.name.partition(".")[0] == name
        )
        if not own and name in writes(statement):
            return True
    if "global" not in source.text and "*" not in source.text:
        return False
    return any(
        (isinstance(node, ast.Global) and name in node.names)
        or (isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names))
        for node in ast.walk(source.tree)
    )


def _imports(source: Source, module: str) -> bool:
    """Does the file's top level say `import module`? Of `import a.b` the names of a file know only `a`."""
    body = source.tree.body if source.tree is not None else ()
    found = (alias for s in body if isinstance(s, ast.Import) for alias in s.names)
    return any(alias.name == module and alias.asname is None for alias in found)


def insertion(source: Source, module: str, bound: str) -> TextEdit:
    """An edit that adds `import module` behind the last import of the block at the top of the file."""
    tree = source.tree
    assert tree is not None
    text = f"import {module}" if bound == module else f"import {module} as {bound}"
    newline = "\r\n" if "\r\n" in source.text else "\n"
    body = list(tree.body)
    after: ast.stmt | None = None
    if (
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        after = body.pop(0)
    first = body[0] if body else None
    if after is None and not isinstance(first, (ast.Import, ast.ImportFrom)) and first is not None:
        line = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", ()))])
        return TextEdit(Span(line, 0, line, 0), text + newline)
    for statement in body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            break
        if isinstance(statement, ast.Import) or not statement.level or after is None:  # in front of relative imports
            after = statement
    if after is None:
        return TextEdit(Span(1, 0, 1, 0), text + newline)
    line = after.end_lineno or after.lineno
    end = len(source.lines.line(line - 1))
    return TextEdit(Span(line, end, line, end), newline + text)
