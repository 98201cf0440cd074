"""What a call of compiled code finds: its arguments, the variables around the function, globals and modes, by path."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable as Function
from typing import TYPE_CHECKING, cast

from graphmend.analysis.driver.execution.members import is_module, near_chain
from graphmend.analysis.driver.execution.objects import (
    NOTHING,
    Atom,
    Callable,
    ClassObject,
    Compiled,
    Constant,
    Disabled,
    Named,
    Object,
    Partial,
    Scope,
    Values,
)
from graphmend.analysis.driver.guards.atoms import Drawn, Path, Same, Step, Tensor, raw_of
from graphmend.analysis.driver.guards.facts import MAKE_CLASSES

if TYPE_CHECKING:
    from graphmend.analysis.driver.execution.interface import Machine
    from graphmend.analysis.program.definitions import ModuleInfo


class Moment:
    """The state of the program when compiled code is called."""

    def __init__(
        self,
        machine: Machine,
        arguments: dict[str, Values],
        around: Scope | None,
        modes: dict[str, bool],
        backend: object = ...,
    ) -> None:
        self.machine = machine
        self.arguments = arguments
        self.around = around
        """The scope of the compiled function's definition."""
        self.modes = dict(modes)
        self.backend = backend
        """By what the code is compiled, as `backends.backend` gives it."""

    def peek(self, path: Path) -> object:
        """What a guard on `path` compares; `...` where that is not known."""
        last = path[-1]
        if last[0] == "mode":
            return self.modes.get(str(last[1]), ...)
        if last[0] == "backend":
            return self.backend
        if last[0] in _PROPERTIES:
            values = self.values(path[:-1])
            return _PROPERTIES[str(last[0])](values[0], last) if len(values) == 1 else ...
        return leaf(self.values(path))

    def is_drawn(self, path: Path) -> bool:
        """Whether a number that was drawn at random stands at a path."""
        stands = path[-1][0] not in ("mode", "backend") and path[-1][0] not in _PROPERTIES
        return stands and any(isinstance(atom, Drawn) for atom in self.values(path))

    def values(self, path: Path) -> Values:
        """What stands at a path; nothing where that is not known."""
        values = self._root(path[0])
        for step in path[1:]:
            values = self._step(values, step) if len(values) == 1 else NOTHING
        return values

    def _root(self, step: Step) -> Values:
        if step[0] == "argument":
            return self.arguments.get(str(step[1]), NOTHING)
        if step[0] == "global":
            module = cast("ModuleInfo", step[1])
            return self.machine.top_level(module).variables.get(str(step[2]), NOTHING)
        return around(self.around, str(step[1]))

    def _step(self, values: Values, step: Step) -> Values:
        owner, (kind, name) = values[0], (step[0], step[1])
        while isinstance(owner, (Compiled, Disabled)):
            owner = owner.target
        if kind in ("attribute", "parameter") and isinstance(owner, (Object, ClassObject)):
            return attribute_of(self.machine, owner, str(name))
        if kind in ("item", "module") and isinstance(owner, Object):
            if owner.items is not None and isinstance(name, int) and -len(owner.items) <= name < len(owner.items):
                return owner.items[name]
            return (owner.fields or {}).get(name, NOTHING)
        if kind == "closure" and isinstance(owner, Callable):
            return around(owner.scope, str(name))
        if kind == "default" and isinstance(owner, Callable):
            default = owner.info.defaults.get(str(name))
            scope = owner.scope or self.machine.top_level(owner.info.module)
            return self.machine.evaluate(default, scope) if isinstance(default, ast.expr) else NOTHING
        if kind == "keyword" and isinstance(owner, Partial):
            if isinstance(name, int):
                return owner.arguments[name] if name < len(owner.arguments) else NOTHING
            return owner.keywords.get(str(name), NOTHING)
        if kind == "function" and isinstance(owner, Partial):
            return owner.function
        return NOTHING


def attribute_of(m: Machine, owner: Object | ClassObject, name: str) -> Values:
    """An attribute as it is stored: on the object, or on its class."""
    if name in owner.attributes:
        return owner.attributes[name]
    if isinstance(owner, ClassObject) or owner.info is not None:
        assert owner.info is not None
        for info in near_chain(m, owner.info):
            made = m.class_object(info).attributes
            if name in made:
                return made[name]
            if name in info.names:
                return m.evaluate(info.names[name], m.class_object(info).scope or m.top_level(info.module))
    if name in ("training", "requires_grad") and is_module(m, owner):
        return (Constant(True),)
    return NOTHING


def around(scope: Scope | None, name: str) -> Values:
    """A variable of the scopes around a definition."""
    while scope is not None:
        if name in scope.variables and name not in scope.shared:
            return scope.variables[name]
        scope = scope.outer
    return NOTHING


def leaf(values: Values) -> object:
    """The value itself, as a guard compares it."""
    atom = values[0] if len(values) == 1 else None
    if isinstance(atom, Constant):
        raw = raw_of(atom)
        return (type(raw).__name__, raw)
    if isinstance(atom, Tensor):
        return ("Tensor",)
    if isinstance(atom, Callable):
        return ("function", id(atom.info.node))
    if isinstance(atom, Named):
        return ("function", atom.name) if _is_told_by_name(atom.name) else ...
    if isinstance(atom, ClassObject):
        return ("class", _class(atom))
    if isinstance(atom, Partial):
        return ("partial",)
    if isinstance(atom, Object):
        if atom.name in MAKE_CLASSES:
            return ("class", Same(atom.attributes))
        made_of = atom.attributes.get("__class__", NOTHING)
        if made_of and isinstance(made_of[0], ClassObject):
            return ("object", _class(made_of[0]))
        return ("object", atom.name if atom.info is None else id(atom.info))
    return ...


def _is_told_by_name(name: str) -> bool:
    """Whether something without source is what its name says: a function, type or constant. Two names of any other
    module may stand for tensors alike, on which no graph depends."""
    package, _, rest = name.partition(".")
    if package == "builtins":
        return hasattr(builtins, rest)
    return package in sys.stdlib_module_names or package in ("torch", "numpy")


def _class(atom: ClassObject) -> object:
    """What a class equals: itself alone; one that a function defines is another each time."""
    made_anew = atom.scope is not None and atom.scope.function is not None
    return Same(atom.attributes, atom.info) if made_anew else id(atom.info)


def _of_type(atom: object, step: Step) -> object:
    raw = raw_of(atom)
    return type(raw).__name__ if raw is not ... else "Tensor" if isinstance(atom, Tensor) else ...


def _length(atom: object, step: Step) -> object:
    if isinstance(atom, Object) and atom.items is not None and not atom.rest:
        return len(atom.items)
    return ...


def _keys(atom: object, step: Step) -> object:
    return tuple(atom.fields) if isinstance(atom, Object) and atom.fields is not None and not atom.rest else ...


def _contains(atom: object, step: Step) -> object:
    keys = _keys(atom, step)
    return step[1] in keys if isinstance(keys, tuple) else ...


def _size(atom: object, step: Step) -> object:
    index = step[1]
    if not isinstance(atom, Tensor) or atom.shape is None or not isinstance(index, int) or index >= len(atom.shape):
        return ...
    size = atom.shape[index]
    return ... if size is None else size


def _known(value: object) -> object:
    return ... if value is None else value


def _rank(atom: object, step: Step) -> object:
    return len(atom.shape) if isinstance(atom, Tensor) and atom.shape is not None else ...


_PROPERTIES: dict[str, Function[[Atom, Step], object]] = {
    "type": _of_type,
    "length": _length,
    "modules": _length,
    "keys": _keys,
    "contains": _contains,
    "size": _size,
    "rank": _rank,
    "dtype": lambda atom, step: _known(atom.dtype) if isinstance(atom, Tensor) else ...,
    "gradient": lambda atom, step: _known(atom.gradient) if isinstance(atom, Tensor) else ...,
    "contiguous": lambda atom, step: _known(atom.contiguous) if isinstance(atom, Tensor) else ...,
}
