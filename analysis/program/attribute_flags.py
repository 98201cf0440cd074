"""Boolean attributes that a module's text may switch on, by name.

An attribute that `__init__` sets to False counts as False, unless some line of the module assigns another value to an
attribute of that name.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo
from graphmend.analysis.syntax.nodes import statements_of

_SWITCH = r"\.{}\s*=(?!=|\s*False\b)"
_ANY_SWITCH = re.compile(_SWITCH.format(r"(\w+)"))


#: an attribute of something else than `self` is assigned, one of anything grows, or its name is a text
_CHANGE = (
    r"(?<!\bself)\.{0}\s*=(?!=)|\.{0}\s*(?:\[[^\]\n]*\]\s*=(?!=)|[-+|]=|\.\s*(?:append|extend|insert)\b)"
    r"|[\"']{0}[\"']"
)


class Flags:
    """The names of attributes that one module's text switches on, kept up to date through edits."""

    def __init__(self, module: ModuleInfo, text: str) -> None:
        self._given = Counter(_ANY_SWITCH.findall(text))
        self._setters: dict[str, int] = {}
        """Functions that set a flag from a parameter, and how often the text names them."""
        for info in module.all_functions():
            for attr in sets_flags(info):
                times = self._setters[info.name] = _times(info.name, text)
                self._given[attr] -= times == 1  # nothing in sight calls it

    def __contains__(self, name: str) -> bool:
        return self._given[name] > 0

    def edited(self, old: str, new: str) -> set[str] | None:
        """Update for an edit and return the attributes whose flag changed. None where it may be any: a function that
        sets flags is named more or less often."""
        if any(_times(name, old) != _times(name, new) for name in self._setters):
            return None
        change = Counter(_ANY_SWITCH.findall(new))
        change.subtract(_ANY_SWITCH.findall(old))
        before = {name for name, times in change.items() if times and name in self}
        self._given.update(change)
        return before ^ {name for name, times in change.items() if times and name in self}


def switched(module: ModuleInfo, name: str) -> bool:
    """Whether a module's text gives any object's attribute `name` another value than False."""
    if module.flags is not None:
        return name in module.flags
    known = module.switched.get(name)
    if known is None:
        text = module.source.text
        given = len(re.findall(_SWITCH.format(name), text))
        known = module.switched[name] = given > 0 and given > sum(attr == name for attr in _never_called(module, text))
    return known


def set_at_first(classes: Iterable[ClassInfo], name: str) -> bool:
    """Whether the `__init__` of some classes alone, of a class and its bases, sets an attribute, and nothing in
    their modules changes it: no other object's attribute of that name is assigned, none grows, and no text names it."""
    texts = {cls.module.source.text for cls in classes}
    setters = [method for cls in classes for method, *_ in cls.assigned.get(name, ())]
    changed = re.compile(_CHANGE.format(name))
    return [one.name for one in setters] == ["__init__"] and not any(map(changed.search, texts))


def set_outside(module: ModuleInfo, name: str) -> bool:
    """Whether a module's text stores an attribute of that name of something else than `self`."""
    return re.search(rf"(?<!\bself)\.{name}\s*=(?!=)", module.source.text) is not None


def _never_called(module: ModuleInfo, text: str) -> Iterator[str]:
    """The attributes set by functions that the module never calls."""
    for info in module.all_functions():
        for attr in sets_flags(info):
            if _times(info.name, text) == 1:
                yield attr


def sets_flags(info: FunctionInfo) -> Iterator[str]:
    """The attributes that a function sets to a parameter of its own, False by default:
    `def _set_gradient_checkpointing(self, module, value=False): module.gradient_checkpointing = value`."""
    off = {n for n, d in info.defaults.items() if isinstance(d, ast.Constant) and d.value is False}
    for statement in statements_of(info.node.body) if off and not isinstance(info.node, ast.Lambda) else ():
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Name):
            target = statement.targets[0]
            if statement.value.id in off and isinstance(target, ast.Attribute):
                yield target.attr


def _times(name: str, text: str) -> int:
    return len(re.findall(rf"\b{name}\b", text))
