"""What names of a project stand for while its code is read: plain values of Python and torch as they are, and stand-ins
for the rest.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import types
from typing import Any


class Unknown:
    """Whatever cannot be told without running the program. Compare with `is UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()

#: objects that are nothing but their attributes
NAMESPACES = (argparse.Namespace, types.SimpleNamespace)


class Scope:
    """Names of a module, class or function. `path` is the file, `outer` the scope around it."""

    def __init__(self, path: str, outer: Scope | None = None) -> None:
        self.path = path
        self.outer = outer
        self.names: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}
        """What a module gave, by the name that is unknown for it."""
        self.declared: dict[str, Scope] = {}
        """Where a name is kept that a function calls `global` or `nonlocal`."""

    def get(self, name: str) -> Any:
        if name in self.declared:
            return self.declared[name].get(name)
        if name in self.names:
            return self.names[name]
        return UNKNOWN if self.outer is None else self.outer.get(name)

    @property
    def of_module(self) -> Scope:
        """That of the module around it; the outermost one of all has the builtins."""
        scope = self
        while scope.outer is not None and scope.outer.outer is not None:
            scope = scope.outer
        return scope

    def output(self, name: str) -> Any:
        """What a module gave that a name is unknown for; None where it gave none."""
        if name in self.names or self.outer is None:
            return self.outputs.get(name)
        return self.outer.output(name)


class External:
    """Something of an installed package, and the name by which it is reached: "torch.nn.Linear"."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value


class Module:
    """A module of the project."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope


class Function:
    """A function or lambda of the project; `owner` is the instance or class it is bound to, `home` its class."""

    def __init__(self, node: Any, scope: Scope, owner: Any = None, home: Class | None = None) -> None:
        self.node = node
        self.scope = scope
        self.owner = owner
        self.home = home

    def bound(self, owner: Any) -> Function:
        return Function(self.node, self.scope, owner, self.home)

    def has_decorator(self, word: str) -> bool:
        return any(word in ast.unparse(each) for each in getattr(self.node, "decorator_list", ()))


class Class:
    """A class of the project: its own names, and what its bases stand for."""

    def __init__(self, node: ast.ClassDef, scope: Scope, bases: list[Any]) -> None:
        self.node = node
        self.scope = scope
        self.bases = bases

    def get(self, name: str) -> Any:
        if name in self.scope.names:
            return self.scope.names[name]
        return self.inherited(name)

    def inherited(self, name: str) -> Any:
        found = (base.get(name) for base in self.bases if isinstance(base, Class))
        return next((value for value in found if value is not UNKNOWN), UNKNOWN)

    def ancestors(self) -> list[Any]:
        """Bases of bases, those outside of the project last in each line."""
        return [*self.bases, *(a for base in self.bases if isinstance(base, Class) for a in base.ancestors())]

    @property
    def is_mapping(self) -> bool:
        """Whether it is a dictionary with something more."""
        outside = (each.value for each in self.ancestors() if isinstance(each, External))
        return any(isinstance(value, type) and issubclass(value, dict) for value in outside)

    @property
    def is_dataclass(self) -> bool:
        own = any("dataclass" in ast.unparse(each) or "attr" in ast.unparse(each) for each in self.node.decorator_list)
        named = any(isinstance(base, External) and base.name == "typing.NamedTuple" for base in self.bases)
        return own or named or any(isinstance(base, Class) and base.is_dataclass for base in self.bases)

    def fields(self) -> list[ast.AnnAssign]:
        """The annotated names in the class's body, those of its bases first."""
        above = [field for base in self.bases if isinstance(base, Class) for field in base.fields()]
        own = [n for n in self.node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
        return above + own


class Instance:
    """An object of a project's class: how it was made, and the attributes that were set since."""

    def __init__(self, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.cls = cls
        self.args = args
        self.kwargs = kwargs
        self.fields: dict[str, Any] = {}
        self.later: dict[str, Any] | None = None
        """The attributes that were set from outside once it was made; None before."""


class Output:
    """What a module of the project gives, which only a run can tell: `path` leads to the part of it that is meant."""

    def __init__(self, cls: Class, path: tuple[Any, ...] = ()) -> None:
        self.cls = cls
        self.path = path

    def __repr__(self) -> str:
        return f"Output({self.cls.node.name}, {self.path})"


class Call:
    """One call of an object of the watched class; `method` is "" for the object itself. Of a watched function, it is
    the `instance`.
    """

    def __init__(self, instance: Instance | Function, method: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.instance = instance
        self.method = method
        self.args = args
        self.kwargs = kwargs


class Mapping(dict[Any, Any]):
    """An object of a project's own kind of dictionary, whose keys read as attributes."""

    def __init__(self, home: Class, items: dict[Any, Any]) -> None:
        super().__init__(items)
        self.home = home

    def __deepcopy__(self, memo: dict[int, Any]) -> Mapping:
        return Mapping(self.home, copy.deepcopy(dict(self), memo))


class Above:
    """`super()` in a method of a class."""

    def __init__(self, owner: Any, home: Class) -> None:
        self.owner = owner
        self.home = home


class Layer:
    """A module of torch that is to be made: "nn.Linear", (16, 4), {}."""

    def __init__(self, name: str, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.name = name
        self.args = args
        self.kwargs = kwargs


class Batches:
    """A loader of batches: what one sample is, and the function that joins samples, if it is not the usual one."""

    def __init__(self, samples: Any, join: Any = None) -> None:
        self.samples = samples
        self.join = join


class Opened:
    """A file of the project that is read: `path` is "" where it cannot be told, and ends in one of `endings`;
    `somewhere` is whether only the end of its path is known.
    """

    def __init__(
        self, path: str, endings: tuple[str, ...] = (".json", ".yaml", ".yml", ".toml"), *, somewhere: bool = False
    ) -> None:
        self.path = path
        self.endings = endings
        self.somewhere = somewhere


def in_unknown_folder(parts: list[Any]) -> Any:
    """The file of settings that joined parts of a path name, where the folder cannot be told and the name can; else
    UNKNOWN.
    """
    after = len(parts) - next((n for n, part in enumerate(reversed(parts)) if part is UNKNOWN), len(parts))
    rest = [part.strip("/") for part in parts[after:] if isinstance(part, str)]
    found = Opened("/".join(rest), somewhere=True)
    named = len(rest) == len(parts) - after and os.path.splitext(found.path)[1] in found.endings
    return found if named else UNKNOWN


def is_named_tuple(value: Any) -> bool:
    """Whether it is a class of tuples whose items have names."""
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def known(value: Any) -> bool:
    """Whether nothing in a plain value is unknown."""
    if isinstance(value, (list, tuple, set)):
        return all(map(known, value))
    if isinstance(value, dict):
        return all(map(known, value.values()))
    return value is not UNKNOWN


def is_false(value: Any) -> bool:
    """Whether a value is known to be false."""
    try:
        return known(value) and not value
    except Exception:  # what has no truth: a tensor of several numbers
        return False


def names_of(value: Any) -> Any:
    """What `vars` gives of a module of the project, or of a namespace of settings."""
    plain = isinstance(value, NAMESPACES)
    return value if isinstance(value, Module) else vars(value) if plain else UNKNOWN
