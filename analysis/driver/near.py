"""The modules whose source driver code is followed into: those of the same project, by their text at first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from graphmend.analysis.driver.words import may_compile
from graphmend.analysis.program.project import NEVER_READ, ModuleText

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import ModuleInfo
    from graphmend.analysis.program.project import Project
    from graphmend.analysis.syntax.source import Source

_INSTALLED = ("/site-packages/", "/dist-packages/", "\\site-packages\\")
_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<of>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]*\)|[^\n#]*)|import[ \t]+(?P<plain>[^\n#]*))",
    re.MULTILINE,
)
_NAME = re.compile(r"[\w.]+")
_DECORATED = re.compile(r"^@", re.MULTILINE)
#: more modules than these are not looked through
_MOST = 150
#: names that are looked up for a text that does not mention torch
_A_FEW = 60


class Near:
    """The modules that are followed from one: those of its own project. An installed package stands alone: what drives
    it is elsewhere."""

    def __init__(self, project: Project, main: ModuleInfo | None) -> None:
        self.project = project
        self._main = main
        self._alone = main is not None and (project.is_library or is_installed(main.source.path))

    def get(self, name: str) -> ModuleInfo | None:
        """A module by its dotted name; None for one that is not followed."""
        if self._main is not None and name == self._main.name:
            return self._main
        if self.text(name) is None:
            return None
        return self.project.module(name)

    def text(self, name: str) -> ModuleText | None:
        """The text of a module that is followed, by its dotted name."""
        package = name.partition(".")[0]
        if self._alone or not package or package in NEVER_READ:
            return None
        texts = self.project.texts
        if name not in texts:
            found = self.project.loader.find(name)
            texts[name] = None if found is None or is_installed(found[0]) else _read(name, *found)
        return texts[name]

    def follows(self, module: ModuleInfo) -> bool:
        """Whether the source of a module is followed."""
        return module is self._main or not (self._alone or is_installed(module.source.path))

    def registering(self, names: list[str], met: set[str]) -> Iterator[ModuleInfo]:
        """Of the modules that imports execute, directly or not, those that hand definitions to a decorator of the
        program, which may keep them; none of those that were `met`, which grows."""
        todo = list(names)
        while todo and len(met) < _MOST:
            name = todo.pop()
            text = self.text(name) if name not in met else None
            met.add(name)
            if text is None or (self._main is not None and name == self._main.name):
                continue
            todo += text.imports
            module = self.get(name) if _DECORATED.search(text.text) is not None else None
            if module is not None and any(self._is_own(d, module) for d in _decorators(module)):
                yield module

    def _is_own(self, decorator: ast.expr, module: ModuleInfo) -> bool:
        """Whether a decorator is a function or object of the program."""
        while not isinstance(decorator, ast.Name):
            if not isinstance(decorator, (ast.Call, ast.Attribute)):
                return False
            decorator = decorator.func if isinstance(decorator, ast.Call) else decorator.value
        qualified = module.imports.get(decorator.id)
        if qualified is None:
            return decorator.id in module.functions or decorator.id in module.classes or decorator.id in module.globals
        return self.text(qualified) is not None or self.text(qualified.rpartition(".")[0]) is not None

    def imported(self) -> list[ModuleText]:
        """All modules that the first one imports, directly or not."""
        if self._main is None:
            return []
        source = self._main.source
        found: dict[str, ModuleText] = {}
        todo = list(_imports(self._main.name, source.path, source.text)) if not self._alone else []
        seen = set(todo)
        while todo and len(found) < _MOST:
            name = todo.pop()
            if name not in found and name != self._main.name and (module := self.text(name)) is not None:
                found[name] = module
                todo += [other for other in module.imports if other not in seen]
                seen.update(module.imports)
        return list(found.values())


def may_drive(project: Project, source: Source) -> bool:
    """Whether a text may compile something, by its own words or those of a module that it imports. One of these texts
    must mention torch, and it need not be the first."""
    if "torch" in source.text:
        return True
    if project.is_library or is_installed(source.path) or "import" not in source.text:
        return False
    near, compiles, torch = Near(project, None), may_compile(source.text), False
    todo = list(_imports(project.loader.module_name(source.path) or "", source.path, source.text))
    seen: set[str] = set()
    while todo and len(seen) < _A_FEW:
        name = todo.pop(0)
        if name not in seen and (module := near.text(name)) is not None:
            compiles, torch = compiles or module.may_compile, torch or "torch" in module.text
            if compiles and torch:
                return True
            todo += module.imports
        seen.add(name)
    return False


def _decorators(module: ModuleInfo) -> Iterator[ast.expr]:
    """The decorators of what a module defines at its top level."""
    for cls in module.classes.values():
        yield from cls.node.decorator_list
    for function in module.functions.values():
        yield from function.decorators


def is_installed(path: str) -> bool:
    """Whether a file belongs to an installed package."""
    return any(part in path for part in _INSTALLED)


def _read(name: str, path: str, text: str) -> ModuleText:
    return ModuleText(name, path, text, tuple(dict.fromkeys(_imports(name, path, text))), may_compile(text))


def _imports(module: str, path: str, text: str) -> Iterator[str]:
    """The modules that a text may import: of `from a import b` both `a` and `a.b`."""
    package = module.split(".")
    if not path.endswith("__init__.py"):
        package = package[:-1]
    for match in _IMPORT.finditer(text):
        if match["plain"] is not None:
            for name in _NAME.findall(match["plain"]):
                parts = name.split(".")
                yield from (".".join(parts[: i + 1]) for i in range(len(parts)))
            continue
        base = match["of"]
        level = len(base) - len(base.lstrip("."))
        if level:
            above = package[: len(package) - level + 1]
            base = ".".join([*above, *([base[level:]] if base[level:] else [])])
        if base:
            yield base
        yield from (f"{base}.{name}" if base else name for name in _NAME.findall(match["names"]))
