"""What driver code computes with: objects with an identity, which are changed in place, and the ways to call something.

Other than the values of the lattice, which stand for every object of a class, an `Object` stands for those that one
expression makes: of two models of one class, one may be compiled. A `Values` is all that an expression may be.
"""

from __future__ import annotations

import ast
from collections.abc import Callable as Function
from collections.abc import Mapping
from typing import Any

from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo, ModuleInfo


class Atom:
    """One thing that an expression may be."""

    __slots__ = ()


Values = tuple[Atom, ...]

#: more than these are not told apart
_MOST = 24


class Unknown(Atom):
    """Anything else."""


ANY = Unknown()
NOTHING: Values = ()
UNKNOWN: Values = (ANY,)


class Constant(Atom):
    """A number, string, bool or None."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


NONE: Values = (Constant(None),)


class Named(Atom):
    """A function, class or module without available source, by qualified name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


class Package(Atom):
    """A module of the program."""

    __slots__ = ("module",)

    def __init__(self, module: ModuleInfo) -> None:
        self.module = module

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Package) and self.module is other.module

    def __hash__(self) -> int:
        return id(self.module)


#: executes the body of a `with` statement, given what its context yields
Inside = Function[[Values], None]


class Scope:
    """The variables of a call, of a module's top level, or of a class's body; `outer` is the scope around the
    definition."""

    __slots__ = ("function", "inside", "module", "outer", "returned", "shared", "variables", "yielded")

    def __init__(self, module: ModuleInfo, function: FunctionInfo | None = None, outer: Scope | None = None) -> None:
        self.module = module
        self.function = function
        self.outer = outer
        self.variables: dict[str, Values] = {}
        self.shared: set[str] = set()
        """Names declared `global` or `nonlocal`."""
        self.returned: Values = ()
        self.yielded: Object | None = None
        """What a generator has given so far, as a sequence."""
        self.inside: Inside | None = None

    def enter(self, values: Values) -> None:
        """A function that makes a context yields: the body of the `with` statement is executed, once."""
        if self.inside is not None:
            inside, self.inside = self.inside, None
            inside(values)

    def generator(self) -> Object:
        """The sequence that a generator adds to."""
        if self.yielded is None:
            self.yielded = sequence([])
        return self.yielded


class Callable(Atom):
    """A function, with the scope of its definition and, of a method, the object that it is bound to."""

    __slots__ = ("info", "receiver", "scope")

    def __init__(self, info: FunctionInfo, scope: Scope | None, receiver: Atom | None = None) -> None:
        self.info = info
        self.scope = scope
        self.receiver = receiver

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Callable)
            and (self.info, self.scope) == (other.info, other.scope)
            and self.receiver is other.receiver
        )

    def __hash__(self) -> int:
        return hash((id(self.info), id(self.receiver)))


class ClassObject(Atom):
    """A class of the program; there is one for each definition. `attributes` were set on it, or come of a decorator."""

    __slots__ = ("attributes", "info", "scope")

    def __init__(self, info: ClassInfo, scope: Scope | None) -> None:
        self.info = info
        self.scope = scope
        self.attributes: dict[str, Values] = {}


class Member(Atom):
    """A member of an enumeration, which is one object however it is read."""

    __slots__ = ("info", "is_value", "name", "value")

    def __init__(self, info: ClassInfo, name: str, value: Values, is_value: bool) -> None:
        self.info = info
        self.name = name
        self.value = value
        self.is_value = is_value
        """Whether the member is a string or number itself."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Member) and (self.info, self.name) == (other.info, other.name)

    def __hash__(self) -> int:
        return hash((id(self.info), self.name))


class Object(Atom):
    """An object that one expression makes: of a class of the program, or of an external one by `name`.

    A sequence has `items`, a mapping `fields` by constant key; `rest` is what either holds beside these.
    """

    __slots__ = ("attributes", "fields", "hooks", "info", "items", "name", "on", "rest", "scope")

    def __init__(self, info: ClassInfo | None = None, name: str = "", scope: Scope | None = None) -> None:
        self.info = info
        self.name = name
        self.scope = scope
        self.attributes: dict[str, Values] = {}
        self.items: list[Values] | None = None
        self.fields: dict[object, Values] | None = None
        self.rest: Values = ()
        self.hooks: Values = ()
        """What is called before or after the module's `forward`."""
        self.on = False
        """Whether these are a trainer's options, by which it compiles the modules that it is given."""

    @property
    def held(self) -> Values:
        """All that the object holds as a container."""
        return union(*(self.items or ()), *(self.fields or {}).values(), self.rest)

    def copied(self) -> Object:
        """Another object that holds the same."""
        other = Object(self.info, self.name, self.scope)
        other.attributes.update(self.attributes)
        other.items = None if self.items is None else list(self.items)
        other.fields = None if self.fields is None else dict(self.fields)
        other.rest, other.hooks, other.on = self.rest, self.hooks, self.on
        return other


class Method(Atom):
    """A method, by name, that no class of the program defines."""

    __slots__ = ("after", "name", "receiver")

    def __init__(self, receiver: Atom, name: str, after: str | None = None) -> None:
        self.receiver = receiver
        self.name = name
        self.after = after
        """The external base class that `super()` finds it in."""


class Super(Atom):
    """`super()` for an object, in a method of the class `after`."""

    __slots__ = ("after", "receiver")

    def __init__(self, receiver: Object, after: ClassInfo) -> None:
        self.receiver = receiver
        self.after = after


class Partial(Atom):
    """`functools.partial(...)`, and a compiling function that has its options but no target yet."""

    __slots__ = ("arguments", "function", "keywords", "node")

    def __init__(
        self, function: Values, arguments: list[Values], keywords: Mapping[str, Values], node: ast.expr
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
        self.node = node


class Transparent(Atom):
    """A decorator that gives back what it is given: `torch.no_grad()`."""

    __slots__ = ()


class Disabled(Atom):
    """What TorchDynamo is told not to trace."""

    __slots__ = ("target",)

    def __init__(self, target: Atom) -> None:
        self.target = target


class Site:
    """A place that compiles something, in which module and function, and with which options."""

    __slots__ = ("fullgraph", "function", "given", "is_dropped", "is_late", "module", "node", "options", "reason")

    def __init__(
        self,
        module: ModuleInfo,
        function: FunctionInfo | None,
        node: ast.expr,
        fullgraph: bool,
        reason: str = "",
        options: frozenset[str] = frozenset(),
        given: Mapping[str, Values] | None = None,
        is_late: bool = False,
    ) -> None:
        self.module = module
        self.function = function
        self.node = node
        self.fullgraph = fullgraph
        self.reason = reason
        """By which option a trainer compiles, where no call of the program says so."""
        self.options = options
        """How it compiles: "dynamic", "export"."""
        self.given: Mapping[str, Values] = given or {}
        """The keywords of the compiling call, as they were when it was executed."""
        self.is_late = is_late
        """Whether what it gives back compiles when it is called."""
        self.is_dropped = False
        """Whether nothing can call that."""


class Compiled(Atom):
    """What a site compiled; `arguments` are those of the calls in sight, by parameter."""

    __slots__ = ("arguments", "site", "target")

    def __init__(self, target: Atom, site: Site) -> None:
        self.target = target
        self.site = site
        self.arguments: dict[str, Values] = {}


def union(*several: Values) -> Values:
    """All that one of several may be."""
    if len(several) == 1:
        return several[0]
    return tuple(dict.fromkeys(atom for values in several for atom in values))[:_MOST]


def constant(values: Values) -> object:
    """The constant that values are, or the member of an enumeration; `...` where they are none, or several."""
    only = values[0] if len(values) == 1 else None
    if isinstance(only, Member):
        return constant(only.value) if only.is_value else only
    return only.value if isinstance(only, Constant) else ...


def sequence(items: list[Values] | None, rest: Values = (), name: str = "builtins.list") -> Object:
    made = Object(name=name)
    made.items, made.rest = items, rest
    return made


def mapping(fields: Mapping[Any, Values], rest: Values = (), name: str = "builtins.dict") -> Object:
    made = Object(name=name)
    made.fields, made.rest = dict(fields), rest
    return made


def plain(atom: Atom) -> Atom:
    """What was compiled, or is wrapped for nothing but that."""
    while isinstance(atom, Compiled):
        atom = atom.target
    return atom
