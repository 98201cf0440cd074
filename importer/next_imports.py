"""Which files a module imports when it runs, in order, and which its functions will: found in its text, nothing is
imported.

Conditions are taken to hold but for those of type checkers: a file too many costs time, no more.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import ModuleInfo
    from graphmend.analysis.program.project import Project

#: where a package loads names when they are asked for: how many modules deep, and in how many `import *` one is sought
_DEEPEST = 5
_MOST_STARS = 20


class NextImports:
    """Follows imports to the files that are looked at: those that are to be mended, and the program's own."""

    def __init__(self, project: Project, is_looked_at: Callable[[str], bool]) -> None:
        self._project, self._is_looked_at = project, is_looked_at
        self._paths: dict[str, str | None] = {}
        """Cache: the files of modules, by dotted name."""

    def of(self, text: str, path: str) -> Iterator[str]:
        """The paths, one and the same more than once perhaps."""
        for name in self._asked_for(text, path, lambda module, tree: _named(module, _run_at_once(tree.body))):
            yield from self._files(name)

    def later(self, text: str, path: str) -> Iterator[str]:
        """Those that its functions import, and what is taken from a module by attribute: a package may load it then."""
        for name in self._asked_for(text, path, lambda module, tree: _named(module, _run_ever(tree))):
            yield from self._files(name)

    def definitions(self, text: str, path: str) -> Iterator[str]:
        """Where that is defined which the text imports, or takes from a module by attribute, as far as it is found."""
        for name in self._asked_for(text, path, lambda module, tree: _named(module, _run_ever(tree))):
            last = next(reversed([*self._files(name)]), "__init__.py")
            if os.path.basename(last) != "__init__.py":  # else the package alone knows it
                yield last

    def _asked_for(
        self, text: str, path: str, names: Callable[[ModuleInfo, ast.Module], Iterator[str]]
    ) -> Sequence[str]:
        from graphmend.analysis.syntax.source import Source

        source = Source(text, path)
        module = self._project.alone(source)
        return () if module is None or source.tree is None else list(dict.fromkeys(names(module, source.tree)))

    def _files(self, name: str, depth: int = 0) -> Iterator[str]:
        """The files that run before something with a qualified name is there."""
        parts = name.split(".")
        owner = ""
        for end in range(1, len(parts) + 1):
            module = ".".join(parts[:end])
            path = self._path(module)
            if path is None:
                break
            owner = module
            if self._is_looked_at(path):
                yield path
        rest = parts[len(owner.split(".")) if owner else 0 :]
        if owner and rest and depth < _DEEPEST:
            yield from self._of_definition(owner, rest[0], depth)

    def _of_definition(self, owner: str, name: str, depth: int) -> Iterator[str]:
        """Those behind a name that a package takes from one of its modules, perhaps not before it is asked for."""
        found = self._taken_from(owner, name, [_MOST_STARS])
        if found is not None and found != f"{owner}.{name}":
            yield from self._files(found, depth + 1)

    def _taken_from(self, owner: str, name: str, left: list[int]) -> str | None:
        """What a name of a module is an import of, or the name itself where the module defines it; None where neither
        is seen. `left` says how many modules of which all names are imported are still looked into.
        """
        path = self._path(owner)
        if path is None or not self._is_looked_at(path) or (module := self._project.module(owner)) is None:
            return None
        if name in module.imports:
            return module.imports[name]
        if _defines(module, name):
            return f"{owner}.{name}"
        for star in _likely(module.stars, name):
            if not left[0]:
                return None
            left[0] -= 1
            if (found := self._taken_from(star, name, left)) is not None:
                return found
        return None

    def _path(self, module: str) -> str | None:
        if module not in self._paths:
            from graphmend.analysis.program.project import NEVER_READ

            known = module.partition(".")[0] not in NEVER_READ
            found = self._project.loader.find(module) if known else None
            self._paths[module] = found[0] if found is not None else None
        return self._paths[module]


def _run_at_once(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The imports among statements, and in the blocks of those that hold any."""
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, ast.If):
            if not _is_for_type_checkers(statement):
                yield from _run_at_once(statement.body)
            yield from _run_at_once(statement.orelse)
        elif isinstance(statement, (ast.Try, ast.With)):
            yield from _run_at_once(statement.body)
            if isinstance(statement, ast.Try):
                yield from _run_at_once(statement.orelse)


def _run_ever(tree: ast.Module) -> Iterator[ast.AST]:
    """Everything in a tree, in order, but what type checkers alone read."""
    left: list[ast.AST] = [tree]
    while left:
        node = left.pop()
        yield node
        inner = node.orelse if isinstance(node, ast.If) and _is_for_type_checkers(node) else ast.iter_child_nodes(node)
        left += reversed([*inner])


def _is_for_type_checkers(statement: ast.If) -> bool:
    return "TYPE_CHECKING" in ast.unparse(statement.test)


def _named(module: ModuleInfo, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The qualified names that imports ask for, and attributes of what was imported."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from [*module.imported(node).values()] or [module.absolute(node)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in module.imports:
            yield f"{module.imports[node.value.id]}.{node.attr}"


def _likely(modules: Sequence[str], name: str) -> list[str]:
    """Modules in the order in which a name is sought in them: those that it begins with come first, as `GPT2Model` does
    with `gpt2`. Of many others none is looked into.
    """
    plain = name.lower()
    own = {module: module.rpartition(".")[2].replace("_", "").lower() for module in modules}
    named = sorted((m for m in modules if plain.startswith(own[m])), key=lambda m: -len(own[m]))
    return named + ([m for m in modules if m not in named] if len(modules) <= _MOST_STARS else [])


def _defines(module: ModuleInfo, name: str) -> bool:
    return name in module.functions or name in module.classes or name in module.globals
