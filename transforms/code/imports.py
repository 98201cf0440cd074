"""Names for what new code refers to: the file's own import where it has one, else one new import in the file's
style. A name that the file gives another meaning, anywhere at its top level, is neither used nor bound.
"""

from __future__ import annotations

import ast
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.syntax.span import Span
from graphmend.analysis.syntax.traversal import nodes_in
from graphmend.transforms.code.liveness import bindings, locals_of
from graphmend.transforms.fix import TextEdit
from graphmend.transforms.questions import answers

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
        return shadowed(self.facts)

    @cached_property
    def _globals(self) -> dict[str, list[_Binding]]:
        tree = self.facts.source.tree
        return _module_bindings(tree) if tree is not None else {}

    @answers("names")
    def name(self, qualified: str, module: str = "torch") -> str:
        """How to spell `qualified`, an attribute path below `module`, at the place of the finding."""
        known = {q: n for n, q in reversed(list(self.facts.names.items())) if n not in self._hidden}
        parent = qualified
        while parent.startswith(module):
            if parent in known and not self._is_bound_again(known[parent]):
                return known[parent] + qualified[len(parent) :]
            parent = parent.rpartition(".")[0]
        return self._add(module) + qualified[len(module) :]

    def _add(self, module: str) -> str:
        if module not in self._new:
            first = module.partition(".")[0]
            if self._is_free_for(first):
                if _imports(self.facts.source, module):
                    return module
                self._new[module] = module
            else:
                self._new[module] = self._fresh("_" + module.replace(".", "_"))
        return self._new[module]

    def _is_free_for(self, name: str) -> bool:
        """Does nothing but imports of the package `name` give this name a meaning?"""
        if name in self._hidden or self.facts.names.get(name, name) != name:
            return False
        bound = self._globals.get(name, [])
        # what a star import brings is not known: its names are left alone, unless the file itself imports the package
        return all(each.target == name for each in bound) and (bool(bound) or "*" not in self._globals)

    def _is_bound_again(self, name: str) -> bool:
        """May a name that an import binds mean something else? Its alternatives in one `try` or `if` count for it."""
        bound = self._globals.get(name, [])
        imports = [each for each in bound if each.target is not None]
        if len({each.target for each in imports}) > 1:
            return True
        places = {id(each.statement) for each in imports}
        return any(each.target is None and id(each.statement) not in places for each in bound)

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self._hidden or name in self._globals:
            name, number = f"{wanted}_{number}", number + 1
        return name

    def edits(self) -> list[TextEdit]:
        """The imports to add."""
        return [insertion(self.facts.source, module, bound) for module, bound in self._new.items()]


class _Binding(NamedTuple):
    """One place that binds a name at a module's top level."""

    statement: ast.stmt
    """The statement of the top level that it stands in."""
    target: str | None
    """What an import binds it to; None for everything else."""


@lru_cache(maxsize=1)
def _module_bindings(tree: ast.Module) -> dict[str, list[_Binding]]:
    """All names of a module, in whichever block and as `global` in whichever function they are bound; `*` stands for
    those of star imports.
    """
    found: dict[str, list[_Binding]] = {}
    for statement in tree.body:
        for name, node in bindings(statement):
            found.setdefault(name, []).append(_Binding(statement, _target(node, name)))
        for node in nodes_in(statement):
            for name in node.names if isinstance(node, ast.Global) else ():
                found.setdefault(name, []).append(_Binding(statement, None))
    return found


def _target(node: ast.AST, name: str) -> str | None:
    if isinstance(node, ast.Import):
        alias = next(a for a in reversed(node.names) if (a.asname or a.name).partition(".")[0] == name)
        return alias.name if alias.asname else name
    if isinstance(node, ast.ImportFrom):
        alias = next(a for a in reversed(node.names) if (a.asname or a.name) == name)
        return f"{'.' * node.level}{node.module or ''}.{alias.name}"
    return None


def shadowed(facts: FunctionFacts) -> set[str]:
    """Names that do not mean the module's binding at the place of the finding."""
    function, hidden = facts.function, {*locals_of(facts.function)}
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
