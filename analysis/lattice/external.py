"""Values without a definition in the program: external names, instances of external classes, partly known strings, and
callables that the analysis implements itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from graphmend.analysis.lattice.values import Container, Static, Value


class ExternalName(Value):
    """A function, class or module without available source, by qualified name: `torch.nn.functional.relu`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def key(self) -> Hashable:
        return ("ref", self.name)

    def __repr__(self) -> str:
        return f"Ref({self.name})"


class UnresolvedName(ExternalName):
    """A name that is no builtin, and that the top level of its module does not define in sight."""

    __slots__ = ()


class UndefinedName(UnresolvedName):
    """One that nothing in its module binds, in no scope."""

    __slots__ = ()


class ExternalInstance(Value):
    """An instance of an external class, by the class's qualified name: `logging.Logger`, `torch.nn.Linear`."""

    __slots__ = ("cls", "made_inside")
    opaque = True

    def __init__(self, cls: str, made_inside: bool = False) -> None:
        self.cls = cls
        self.made_inside = made_inside

    @property
    def key(self) -> Hashable:
        return ("object", self.cls, self.made_inside)

    def __repr__(self) -> str:
        return f"Object({self.cls})"


class PartialString(Static):
    """A string with a known beginning and end: `f"layer{i}"`."""

    __slots__ = ("begins", "ends")

    def __init__(self, begins: str, ends: str) -> None:
        super().__init__("str")
        self.begins = begins
        self.ends = ends

    def fits(self, text: str) -> bool:
        """Whether the string may be `text`."""
        return len(text) > len(self.begins + self.ends) and text.startswith(self.begins) and text.endswith(self.ends)


class IdNumber(Static):
    """The `id` of a tensor that the graph computes: TorchDynamo knows it by name only."""

    __slots__ = ()
    opaque = True

    def __init__(self) -> None:
        super().__init__("int")

    @property
    def key(self) -> Hashable:
        return ("id",)


class Enumeration(Container):
    """What `enumerate` gives: TorchDynamo traces it as a generator that counts, which it can't hand out half-way."""

    __slots__ = ()

    def __init__(self, of: Value) -> None:
        super().__init__("generator", of=of)


class ManagedContext(Container):
    """What a function under `contextlib.contextmanager` gives: `of` is what it yields."""

    __slots__ = ()

    def __init__(self, of: Value) -> None:
        super().__init__("generator", of=of)

    @property
    def identity(self) -> Hashable:
        return "context"


class WrittenText(Static):
    """A string with a tensor's value in it: Dynamo keeps it as a format and the tensors, and its text is unknown."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__("str")

    @property
    def key(self) -> Hashable:
        return ("written",)


class Intrinsic(Value):
    """A callable that the analysis implements, as `call(walk, arguments, keywords, node)`: mostly a partial, which
    `holds` some arguments."""

    __slots__ = ("call", "holds", "name")

    def __init__(self, name: str, call: Callable[..., Value], holds: tuple[Value, ...] = ()) -> None:
        self.name = name
        self.call = call
        self.holds = holds

    @property
    def key(self) -> Hashable:
        return ("native", self.name, id(self.call))
