"""Other modules' definitions, read through a `Loader` that the caller supplies. Knows no file system itself."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.program.definitions import ModuleInfo
from graphmend.analysis.syntax.source import Source

if TYPE_CHECKING:
    from graphmend.analysis.lattice.values import Value


class Loader(Protocol):
    """Where the text of a module comes from. Never runs code."""

    def find(self, module: str) -> tuple[str, str] | None:
        """(path, text) of a module by its dotted name; None where there is none. A package's path ends in
        `__init__.py`."""

    def module_name(self, path: str) -> str | None:
        """The dotted name under which the file at `path` is imported; None where it stands in no package or search
        folder."""


class NoLoader:
    """Reaches nothing: for a text that stands alone."""

    def find(self, module: str) -> tuple[str, str] | None:
        return None

    def module_name(self, path: str) -> str | None:
        return None


#: modules that are never read: torch is known from its facts, the standard library by name
NEVER_READ = frozenset({"torch", "numpy", "builtins", "typing", "typing_extensions", "logging", "warnings"})
#: what mended text calls: made for TorchDynamo, in ways that the analysis does not follow
RUNTIME = "graphmend.runtime"


def _is_read(name: str) -> bool:
    return name.partition(".")[0] not in NEVER_READ and not f"{name}.".startswith(f"{RUNTIME}.")


class Project:
    """Modules that were read so far, by dotted name. One project serves many checks."""

    def __init__(self, loader: Loader | None = None, *, lean: bool = False) -> None:
        self.loader = loader or NoLoader()
        self._lean = lean
        """Whether imported modules keep no more syntax trees than are asked for: less memory for a little time."""
        self._modules: dict[str, ModuleInfo | None] = {}
        self.resolved: dict[str, Value] = {}
        """Qualified names that were looked up so far."""
        self.results: dict[Hashable, tuple[Value, Mapping[str, Value]]] = {}
        """What calls of these modules' functions gave, and the arguments, where no other text had a part in it."""
        self._for_itself: set[str] = set()
        """Modules that were read to be checked, and that no other one has imported."""

    def module(self, name: str) -> ModuleInfo | None:
        """A module in reach of the loader; None for one that is missing, does not parse or is never read."""
        if name in self._modules:
            self._for_itself.discard(name)
            return self._modules[name]
        self._modules[name] = None  # an import in a circle finds nothing to add
        if _is_read(name) and (found := self.loader.find(name)) is not None:
            path, text = found
            module = self._modules[name] = self.read(Source(text, path), name)
            if module is not None and self._lean:
                module.release_trees()
        return self._modules[name]

    def alone(self, source: Source) -> ModuleInfo | None:
        """The definitions of one source, for one reader alone, who changes them as the text is edited."""
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
        """Drop modules that were read to be checked and that no other module has a use for, `modules` among them."""
        for name in self._for_itself:
            self._modules.pop(name, None)
        self._for_itself.clear()
        for module in modules:
            if self._modules.get(module.name) is not module:
                module.close()

    def release_trees(self) -> None:
        """Let go of what was asked for of the imported modules' syntax trees, where little memory is wanted."""
        for module in self._modules.values() if self._lean else ():
            if module is not None:
                module.release_trees_again()

    def forget(self, *paths: str) -> None:
        """Drop what was read from files that have changed, or that nobody needs any more."""
        for name, module in list(self._modules.items()):
            if module is None or module.source.path in paths:
                del self._modules[name]
        self.resolved.clear()
        self.results.clear()
        self._for_itself &= self._modules.keys()
