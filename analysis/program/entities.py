"""Abstract values with a definition in the program: functions, classes, instances, methods."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from graphmend.analysis.lattice.values import Container, Value
from graphmend.analysis.program.definitions import ClassInfo, FunctionInfo


class Function(Value):
    """A function or lambda whose source is available; `bound` is its receiver, `closure` the names around it."""

    __slots__ = ("bound", "closure", "info")

    def __init__(
        self, info: FunctionInfo, bound: Value | None = None, closure: Mapping[str, Value] | None = None
    ) -> None:
        self.info = info
        self.bound = bound
        self.closure = closure

    @property
    def key(self) -> Hashable:
        return ("function", id(self.info), None if self.bound is None else self.bound.key)

    def __repr__(self) -> str:
        return f"Function({self.info.name})"


class Class(Value):
    """A class whose source is available."""

    __slots__ = ("info",)

    def __init__(self, info: ClassInfo) -> None:
        self.info = info

    @property
    def key(self) -> Hashable:
        return ("class", id(self.info))

    def __repr__(self) -> str:
        return f"Class({self.info.name})"


class Instance(Value):
    """An instance of a class whose source is available. `given`: what its `__init__` was called with, by parameter, as
    far as instances are told apart by it: tensors, where traced code made it, and functions that it may call."""

    __slots__ = ("given", "info", "made_inside")
    dispatches = True

    def __init__(self, info: ClassInfo, made_inside: bool = False, given: Mapping[str, Value] | None = None) -> None:
        self.info = info
        self.made_inside = made_inside
        self.given = given

    @property
    def key(self) -> Hashable:
        given = tuple((k, v.key) for k, v in self.given.items()) if self.given else None
        return ("instance", id(self.info), self.made_inside, given)

    def __repr__(self) -> str:
        return f"Instance({self.info.name})"


class Record(Container):
    """An instance of a dataclass or named tuple: `fields` by attribute, `items` too where it is a tuple."""

    __slots__ = ("info",)
    dispatches = True

    def __init__(
        self,
        info: ClassInfo,
        fields: Mapping[Any, Value] | None,
        items: tuple[Value, ...] | None = None,
        of: Value | None = None,
    ) -> None:
        super().__init__("record", items, of, fields)
        self.info = info

    @property
    def identity(self) -> Hashable:
        return id(self.info)

    def with_parts(
        self, items: tuple[Value, ...] | None, of: Value | None, fields: Mapping[Any, Value] | None
    ) -> Record:
        return Record(self.info, fields, items, of)


def class_of(value: Value) -> ClassInfo | None:
    """The class of a value, where its source is available."""
    return value.info if isinstance(value, (Instance, Record)) else None


class Method(Value):
    """A method, by name, of a value whose class has no available source."""

    __slots__ = ("name", "receiver")
    opaque = True

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver = receiver
        self.name = name

    @property
    def key(self) -> Any:
        return ("method", self.receiver.key, self.name)


class Super(Value):
    """`super()` in a method of `after`, for an instance of `info`."""

    __slots__ = ("after", "info", "receiver")

    def __init__(self, info: ClassInfo, after: ClassInfo, receiver: Value) -> None:
        self.info = info
        self.after = after
        self.receiver = receiver

    @property
    def key(self) -> Any:
        return ("super", id(self.info), id(self.after))
