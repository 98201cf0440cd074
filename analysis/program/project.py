"""The project: definitions of other modules, read through a `Loader` that the caller supplies. Opens no file itself."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from graphmend.analysis.program.definitions import ClassInfo, ModuleInfo
from graphmend.analysis.syntax.source import Source

if TYPE_CHECKING:
    from graphmend.analysis.lattice.values import Value


class Loader(Protocol):
    """Finds the text of modules. Never runs code."""

    def find(self, module: str) -> tuple[str, str] | None:
        """(path, text) of a module by its dotted name; None where there is none. A package's path ends in
        `__init__.py`."""

    def module_name(self, path: str) -> str | None:
        """The dotted name under which the file at `path` is imported; None where it stands in no package or search
        folder."""


class ModuleText(NamedTuple):
    """A module that was found, and is not parsed yet."""

    name: str
    path: str
    text: str
    imports: tuple[str, ...]
    """The names of what it may import."""
    may_compile: bool


class NoLoader:
    """Finds no module: for a text that is analysed alone."""

    def find(self, module: str) -> tuple[str, str] | None:
        return None

    def module_name(self, path: str) -> str | None:
        return None


#: modules that are never read: torch is known from its facts, the standard library by name, and what mended text names
#: (`graphmend.runtime`) by what it is for
NEVER_READ = frozenset(
    {"graphmend", "torch", "numpy", "builtins", "typing", "typing_extensions", "logging", "warnings", "scipy"}
    | {"inspect", "ast", "tokenize", "re", "importlib"}
)


class Project:
    """The modules read so far, by dotted name, and results that files share. One project serves many checks."""

    def __init__(self, loader: Loader | None = None, *, lean: bool = False, is_library: bool = False) -> None:
        self.loader = loader or NoLoader()
        self._lean = lean
        """Whether imported modules release syntax trees until they are needed: less memory for a little time."""
        self.is_library = is_library
        """Whether what drives its modules is elsewhere, as for an installed package, wherever they lie: none is
        followed from another in search of what compiles."""
        self._modules: dict[str, ModuleInfo | None] = {}
        self.texts: dict[str, ModuleText | None] = {}
        """Cache: modules that were found and, most of them, not read."""
        self.reaching: dict[frozenset[str], frozenset[str]] = {}
        """Cache: for sets of modules, the names by which these reach what compiles."""
        self.resolved: dict[str, Value] = {}
        """Cache: the values of qualified names."""
        self.results: dict[Hashable, tuple[Value, Mapping[str, Value]]] = {}
        """Shared results of calls into these modules, with the arguments."""
        self._missed: set[str] = set()
        """Modules that were sought and not found: others may hold on to that."""
        self._for_itself: set[str] = set()
        """Modules that were read to be checked, and that no other module has imported."""

    def module(self, name: str) -> ModuleInfo | None:
        """A module that the loader finds; None for one that is missing, does not parse or is never read."""
        if name in self._modules:
            self._for_itself.discard(name)
            return self._modules[name]
        self._modules[name] = None  # an import in a circle finds nothing to add
        if name.partition(".")[0] not in NEVER_READ and (found := self.loader.find(name)) is not None:
            path, text = found
            module = self._modules[name] = self.read(Source(text, path), name)
            if module is not None and self._lean:
                module.release_trees()
        if self._modules[name] is None:
            self._missed.add(name)
        return self._modules[name]

    def paths(self) -> list[str]:
        """The files of the modules that were read so far, in that order."""
        return [module.source.path for module in self._modules.values() if module is not None]

    def alone(self, source: Source) -> ModuleInfo | None:
        """The definitions of one source for its caller alone, who updates them as the text is edited."""
        if source.tree is None:
            return None
        return ModuleInfo(source, self.loader.module_name(source.path) or "")

    def read(self, source: Source, name: str | None = None) -> ModuleInfo | None:
        """The definitions of one source; None where it does not parse."""
        by_itself = name is None
        if name is None:
            name = self.loader.module_name(source.path) or ""
            known = self._modules.get(name) if name else None
            if known is not None and not known.are_trees_released and known.source.is_same(source):
                return known
        if source.tree is None:
            return None
        module = ModuleInfo(source, name)
        if name and self._modules.get(name) is None:
            self._modules[name] = module
            if by_itself:
                self._for_itself.add(name)
        return module

    def release(self, *modules: ModuleInfo) -> None:
        """Drop modules that were read to be checked and that no other module imports, `modules` among them."""
        for name in self._for_itself:
            self._modules.pop(name, None)
        self._for_itself.clear()
        for module in modules:
            if self._modules.get(module.name) is not module:
                module.close()

    def release_trees(self) -> None:
        """Release the syntax trees of imported modules that were parsed again, in a lean project."""
        for module in self._modules.values() if self._lean else ():
            if module is not None:
                module.release_trees_again()

    def release_all_trees(self) -> None:
        """Release those of modules that were checked too: no facts are asked of their results from now on."""
        for module in self._modules.values() if self._lean else ():
            if module is None:
                continue
            if module.are_trees_released:
                module.release_trees_again()
            else:
                module.release_trees()

    def forget(self, *paths: str) -> None:
        """Drop the modules of files that have changed, or that nobody needs any more, and what depends on them."""
        missing = [name for name, module in self._modules.items() if module is None]
        gone = [name for name, module in self._modules.items() if module is not None and module.source.path in paths]
        stems = {os.path.basename(path.removesuffix("/__init__.py")).removesuffix(".py") for path in paths}
        named = {name for name in self._missed if name.rpartition(".")[2] in stems}
        is_held = bool(named) or not self._for_itself.issuperset(gone)
        self._missed -= named
        for name in (*missing, *gone):
            del self._modules[name]
        for module in self._modules.values() if is_held else ():
            if module is not None:
                module.value_cache.clear()
                _unresolve(module.classes.values())
        self.texts = {
            name: known for name, known in self.texts.items() if known is not None and known.path not in paths
        }
        self.reaching.clear()
        self.resolved.clear()
        self.results.clear()
        self._for_itself &= self._modules.keys()


def _unresolve(classes: Iterable[ClassInfo]) -> None:
    """Drop what classes have found in other modules."""
    for cls in classes:
        cls.attribute_cache.clear()
        cls.chain = None
        _unresolve(cls.classes.values())
