"""Which functions may compile something, by the names in their text: what is worth executing, and what is not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from graphmend.analysis.driver.frameworks import COMPILERS
from graphmend.analysis.driver.near import Near
from graphmend.analysis.driver.words import may_compile
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo

if TYPE_CHECKING:
    from graphmend.analysis.program.project import ModuleText, Project

_WORD = re.compile(r"\w+")
#: methods that are called without being named: their class is
_IMPLICIT = frozenset({"__init__", "__post_init__", "__call__", "__new__", "__enter__", "__init_subclass__", "forward"})


class Reach:
    """The names of functions and classes by which a module reaches what compiles."""

    def __init__(self, project: Project, main: ModuleInfo) -> None:
        self.near = Near(project, main)
        self.names = self._names(main)

    def concerns(self, text: str) -> bool:
        """Whether a text may compile something, by itself or by what it names."""
        return may_compile(text) or (bool(self.names) and not self.names.isdisjoint(_WORD.findall(text)))

    def _names(self, main: ModuleInfo) -> frozenset[str]:
        texts = self.near.imported()
        key = frozenset(one.name for one in texts)
        known = self.near.project.reaching
        if key not in known:
            known[key] = self._imported(texts) if any(one.may_compile for one in texts) else frozenset()
        found = known[key]
        if may_compile(main.source.text) or any(name in main.source.text for name in found):
            return found | _own(main, set(found))
        return found

    def _imported(self, texts: list[ModuleText]) -> frozenset[str]:
        """The names by which modules reach what compiles: those that do so themselves, then those that name these."""
        found: set[str] = set()
        left = [one for one in texts if one.may_compile]
        others = [one for one in texts if not one.may_compile]
        while left:
            for one in left:
                module = self.near.get(one.name)
                found |= _own(module, found) if module is not None else set()
            left = [one for one in others if any(name in one.text for name in found)]
            others = [one for one in others if one not in left]
        return frozenset(found)


def _header(module: ModuleInfo, cls: ClassInfo) -> str:
    source = module.source
    return " ".join(source.segment(source.span(base)) for base in cls.node.bases)


def _own(module: ModuleInfo, given: set[str]) -> set[str]:
    """The names by which a module's own functions and classes reach what compiles, one by the other."""
    found = {name for name, qualified in module.imports.items() if qualified in COMPILERS}
    if module.reaching is None:
        module.reaching = [(names, may_compile(text), frozenset(_WORD.findall(text))) for names, text in _texts(module)]
    left, new = module.reaching, {name for names, compiles, _ in module.reaching if compiles for name in names}
    found |= new
    new = found | given
    while new:
        reached = {name for names, _, words in left if not new.isdisjoint(words) for name in names} - found
        left = [one for one in left if found.isdisjoint(one[0])]
        found |= reached
        new = reached - given
    return found


def _texts(module: ModuleInfo) -> list[tuple[list[str], str]]:
    """The definitions of a module: by which names each is reached, and its text."""
    texts = [
        ([name], " ".join(module.source.segment(module.source.span(e)) for e in expressions))
        for name, expressions in module.globals.items()
    ]
    texts += [(_called_as(info), text_of(info)) for info in module.all_functions()]
    texts += [([cls.name], _header(module, cls)) for cls in module.classes.values()]
    return texts


def _called_as(info: FunctionInfo) -> list[str]:
    if info.name in _IMPLICIT:
        return [info.owner.name] if info.owner is not None else []
    return [info.name]


def text_of(info: FunctionInfo) -> str:
    """The text of a function, with its decorators."""
    source = info.source
    decorators = " ".join(f"@{source.segment(source.span(d))}" for d in info.decorators)
    return f"{decorators} {source.segment(source.span(info.node))}"
