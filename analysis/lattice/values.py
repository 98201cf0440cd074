"""The lattice of abstract values: what is known of an expression on every run, while TorchDynamo would trace it.

    Tensor      its elements are unknown while tracing
    Scalar      a Python number, bool, string or list taken out of a tensor
    Static      known while tracing: shapes, dtypes, configuration; a `Const` is known to the analysis too
    Container   list, tuple, set, dict, dataclass or named tuple of values
    ExternalName, ExternalInstance
                a module, function or class without available source, by qualified name; an instance of such a class
    Function, Class, Instance
                definitions whose source is available, and instances of such classes
    Choice      one of several of the above
    UNKNOWN     any value: the top of the lattice; no rule judges it
    BOTTOM      no value: the bottom of the lattice, of a call for which no returning path was found yet

A Tensor or Scalar carries its `origin`: the evidence back to the parameter, annotation or torch call that makes it one.
External values are in `external.py`, those with a definition in `program/entities.py`. Values are immutable and compare
by identity; `key` is equal for equal values, whatever their origins: summaries are looked up by it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, Final

from graphmend.analysis.lattice.evidence import Evidence

#: (name, what it holds) each
Marks = frozenset[tuple[str, Hashable]]


class Value:
    """Base of all abstract values."""

    __slots__ = ()
    origin: Evidence | None = None
    may_hold_tensor: bool = False
    """Whether values of this class are tensors, or may hold some."""
    opaque: bool = False
    """Whether the rules want to know what is done with values of this class: TorchDynamo models them only in part."""
    dispatches: bool = False
    """Whether operators and builtins call methods of the value's class, whose source is available."""

    @property
    def key(self) -> Hashable:
        """A hashable identity: values with equal keys are equal but for their evidence."""
        raise NotImplementedError


class _Mark(Value):
    """A value with a single instance."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def key(self) -> Hashable:
        return self.name

    def __repr__(self) -> str:
        return self.name.upper()


class Static(Value):
    """Known while tracing. `type` is the builtin type's name where that is known ("int", "float", "bool", "str",
    "dtype", ...)."""

    __slots__ = ("type",)

    def __init__(self, type: str | None = None) -> None:
        self.type = type

    @property
    def key(self) -> Hashable:
        return ("static", self.type)

    def __repr__(self) -> str:
        return f"Static({self.type})"


class Const(Static):
    """A constant whose value the analysis knows."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__(type(value).__name__)
        self.value = value

    @property
    def key(self) -> Hashable:
        try:
            hash(self.value)
        except TypeError:
            return ("static", self.type)
        return ("const", self.type, self.value)

    def __repr__(self) -> str:
        return f"Const({self.value!r})"


class Tensor(Value):
    """A torch tensor or, with `ndarray`, a NumPy array that Dynamo traces as one.

    `rank` is the number of dimensions where known. `dtype` is "bool", "int", "float" or "complex" (a kind), a torch
    name such as "int64", or a token that is equal exactly where dtypes are equal. `shape` is a token too: equal tokens,
    equal shapes; None is equal to nothing. `graph_input` says that the value enters the graph from outside: Dynamo may
    then read a 0-d one. `constant` says that only Python numbers went into it: Dynamo reads such a one where a size is
    wanted (torch 2.13).
    """

    __slots__ = ("constant", "dtype", "graph_input", "likely", "ndarray", "origin", "rank", "shape")
    may_hold_tensor = True
    marks: Marks = frozenset()
    """What else is known of it for certain (`MarkedTensor`)."""

    def __init__(
        self,
        origin: Evidence | None = None,
        rank: int | None = None,
        dtype: Hashable = None,
        shape: Hashable = None,
        *,
        likely: bool = False,
        graph_input: bool = False,
        ndarray: bool = False,
        constant: bool = False,
    ) -> None:
        self.constant = constant
        self.origin = origin
        self.rank = rank
        self.dtype = dtype
        self.shape = shape
        self.likely = likely
        self.graph_input = graph_input
        self.ndarray = ndarray

    @property
    def key(self) -> tuple[Hashable, ...]:
        flags = (self.likely, self.graph_input, self.ndarray, self.constant)
        return ("tensor", self.rank, dtype_kind(self.dtype), *flags)

    def of_rank(self, rank: int) -> Tensor:
        """The same tensor, where its number of dimensions is known."""
        flags = {"ndarray": self.ndarray, "constant": self.constant, "likely": self.likely}
        return self.__class__(self.origin, rank, self.dtype, self.shape, graph_input=self.graph_input, **flags)

    def entering(self) -> Tensor:
        """The same tensor, as an input of the graph."""
        return Tensor(
            self.origin, self.rank, self.dtype, self.shape, likely=self.likely, graph_input=True, ndarray=self.ndarray
        )

    def __repr__(self) -> str:
        return f"Tensor(rank={self.rank}, dtype={self.dtype}, shape={self.shape})"


class MarkedTensor(Tensor):
    """A tensor of which more is known for certain. Marks, with what they hold: "device" (its name), "contiguous",
    "strided" (it is not contiguous), "class" (the definition of a subclass of Tensor), "consumed" (the node that went
    through its history). What is computed from it has none."""

    __slots__ = ("marks",)

    def __init__(self, *known: Any, **flags: Any) -> None:
        super().__init__(*known, **flags)
        self.marks: Marks = frozenset()

    @property
    def key(self) -> tuple[Hashable, ...]:
        return ("marked", self.marks, *super().key)

    def mark(self, name: str) -> Any:
        """What a mark holds; None without it."""
        return next((held for its, held in self.marks if its == name), None)

    def entering(self) -> Tensor:
        return marked(super().entering(), *self.marks)


def marked(value: Tensor, *marks: tuple[str, Hashable]) -> MarkedTensor:
    """The same tensor, with these marks too."""
    made = MarkedTensor(
        value.origin,
        value.rank,
        value.dtype,
        value.shape,
        likely=value.likely,
        graph_input=value.graph_input,
        ndarray=value.ndarray,
        constant=value.constant,
    )
    made.marks = value.marks | frozenset(marks)
    return made


class SparseTensor(Tensor):
    """A tensor of a sparse layout. Dynamo makes none, so it enters the next graph, and takes none in (torch 2.13)."""

    __slots__ = ()

    @property
    def key(self) -> tuple[Hashable, ...]:
        return ("sparse", *super().key)

    def entering(self) -> Tensor:
        return self


class Scalar(Value):
    """A Python value taken out of a tensor; `type` is "int", "float", "bool", "str", "list" or None.

    Taking it out broke the graph, and behind the break it is a plain number. With `symbolic` it did not: the number is
    a symbol of the graph (capture flags, Python's random numbers), and a branch on it breaks.
    """

    __slots__ = ("likely", "origin", "symbolic", "type")

    def __init__(
        self, origin: Evidence | None = None, type: str | None = None, *, likely: bool = False, symbolic: bool = False
    ) -> None:
        self.origin = origin
        self.type = type
        self.likely = likely
        self.symbolic = symbolic

    @property
    def key(self) -> Hashable:
        return ("scalar", self.type, self.likely, self.symbolic)

    def derived(self, type: str | None) -> Scalar:
        """A number computed from this one."""
        return Scalar(self.origin, type, likely=self.likely, symbolic=self.symbolic)

    def __repr__(self) -> str:
        return f"Scalar({self.type})"


#: containers within containers that are told apart
DEEPEST = 5


#: items, or fields by key, that are told apart; data in the form of a program has more of them
MOST_ITEMS = 256


def _depth(value: Value) -> int:
    if isinstance(value, Container):
        return value.depth
    return max(map(_depth, value.options)) if isinstance(value, Choice) else 0


class Container(Value):
    """`items` where the length is known, else `of`, the join of all elements. A dict has `fields` by constant key as
    far as known; a dataclass or named tuple has `fields` by attribute (`entities.Record`)."""

    __slots__ = ("depth", "fields", "items", "kind", "of")
    may_hold_tensor = True

    def __init__(
        self,
        kind: str,
        items: tuple[Value, ...] | None = None,
        of: Value | None = None,
        fields: Mapping[Any, Value] | None = None,
    ) -> None:
        if items is not None and len(items) > MOST_ITEMS:
            of, items = join_all(items), None
        if fields is not None and len(fields) > MOST_ITEMS:
            fields = None
        self.kind = kind
        self.items = items
        self.of = of
        self.fields = fields
        depth = 0 if of is None else _depth(of)
        for held in (items, fields and fields.values()):
            if held:
                depth = max(depth, *map(_depth, held))
        self.depth = depth + 1
        if self.depth > DEEPEST:
            # nested by a loop, most likely: without a bound there would be no fixed point
            self.items, self.of, self.fields, self.depth = None, UNKNOWN, None, 1

    @property
    def identity(self) -> Hashable:
        """What kind of container it is."""
        return self.kind

    def with_parts(
        self, items: tuple[Value, ...] | None, of: Value | None, fields: Mapping[Any, Value] | None
    ) -> Container:
        """A container of the same kind that holds other values."""
        return Container(self.kind, items, of, fields)

    @property
    def element(self) -> Value:
        """The join of all elements: what iteration yields."""
        if self.items is not None:
            return join_all(self.items)
        return self.of if self.of is not None else UNKNOWN

    @property
    def key(self) -> Hashable:
        items = None if self.items is None else tuple(v.key for v in self.items)
        fields = None if self.fields is None else tuple((repr(k), v.key) for k, v in self.fields.items())
        return ("container", self.identity, items, None if self.of is None else self.of.key, fields)

    def __repr__(self) -> str:
        return f"Container({self.kind}, {self.items if self.items is not None else self.of})"


class Choice(Value):
    """One of several values; made by `join` only."""

    __slots__ = ("options",)
    may_hold_tensor = True

    def __init__(self, options: tuple[Value, ...]) -> None:
        self.options = options

    @property
    def key(self) -> Hashable:
        return ("choice", tuple(o.key for o in self.options))

    def __repr__(self) -> str:
        return "Choice(" + " | ".join(map(repr, self.options)) + ")"


UNKNOWN: Final = _Mark("unknown")
#: an option of the value under a key of a dict: on some paths the key is not set
ABSENT: Final = _Mark("absent")
#: the least value: that of a recursive call as long as no returning path was found
BOTTOM: Final = _Mark("nothing")
STATIC: Final = Static()
INT: Final = Static("int")
FLOAT: Final = Static("float")
BOOL: Final = Static("bool")
STR: Final = Static("str")
NONE: Final = Const(None)
TRUE: Final = Const(True)
FALSE: Final = Const(False)

#: with more options than this, a join is UNKNOWN
_WIDEST = 5

_KINDS = {"bool": "bool", "complex64": "complex", "complex128": "complex", "complex": "complex"}


@lru_cache(maxsize=4096)
def dtype_kind(dtype: Hashable) -> str | None:
    """ "bool", "int", "float" or "complex" of a dtype as a Tensor carries it; None where it is not known."""
    if isinstance(dtype, tuple):  # a token ("float", token): a promotion that has happened for certain
        return dtype[0] if dtype and dtype[0] in ("float", "complex") else None
    if not isinstance(dtype, str):
        return None
    if dtype in _KINDS:
        return _KINDS[dtype]
    if dtype.startswith(("float", "bfloat")):
        return "float"
    if dtype.startswith(("int", "uint")):
        return "int"
    return None


def join(a: Value, b: Value) -> Value:
    """The least value that covers both."""
    if a is b:
        return a
    if a is UNKNOWN or b is UNKNOWN:
        return UNKNOWN
    if a is BOTTOM or b is BOTTOM:
        return b if a is BOTTOM else a
    merged = _join_alike(a, b)
    if merged is not None:
        return merged
    options: list[Value] = list(a.options) if isinstance(a, Choice) else [a]
    for new in b.options if isinstance(b, Choice) else (b,):
        for i, old in enumerate(options):
            one = old if old is new else _join_alike(old, new)
            if one is not None:
                options[i] = one
                break
        else:
            options.append(new)
    if len(options) > _WIDEST:
        return UNKNOWN
    return options[0] if len(options) == 1 else Choice(tuple(options))


def _join_alike(a: Value, b: Value) -> Value | None:
    """The join of two values of one class; None where it would be a `Choice`."""
    if isinstance(a, Tensor):
        if not isinstance(b, Tensor) or a.ndarray != b.ndarray:
            return None
        if (
            a.__class__ is b.__class__
            and a.rank == b.rank
            and a.dtype == b.dtype
            and a.shape == b.shape
            and a.likely == b.likely
            and a.graph_input == b.graph_input
            and a.constant == b.constant
            and a.marks == b.marks
        ):
            return a
        dtype: Hashable = a.dtype if a.dtype == b.dtype else None
        if dtype is None and dtype_kind(a.dtype) == dtype_kind(b.dtype):
            dtype = dtype_kind(a.dtype)
        return Tensor(
            a.origin if not a.likely else b.origin,
            a.rank if a.rank == b.rank else None,
            dtype,
            a.shape if a.shape == b.shape else None,
            likely=a.likely and b.likely,
            graph_input=a.graph_input and b.graph_input,
            ndarray=a.ndarray,
            constant=a.constant or b.constant,
        )
    if isinstance(a, Static):
        if not isinstance(b, Static):
            return None
        if isinstance(a, Const) and isinstance(b, Const) and a.type == b.type and a.value is b.value:
            return a
        if (isinstance(a, Const) and a.value is None) != (isinstance(b, Const) and b.value is None):
            return None
        return Static(a.type if a.type == b.type else None)
    if isinstance(a, Scalar):
        if not isinstance(b, Scalar):
            return None
        same = a.type if a.type == b.type else None
        return Scalar(a.origin, same, likely=a.likely and b.likely, symbolic=a.symbolic and b.symbolic)
    if isinstance(a, Container):
        if not isinstance(b, Container) or a.kind != b.kind:
            return None
        make = a.with_parts if a.identity == b.identity else partial(Container, a.kind)
        fields = _join_fields(a.fields, b.fields, ABSENT if a.kind == "dict" else None)
        if a.items is not None and b.items is not None and len(a.items) == len(b.items):
            return make(tuple(map(join, a.items, b.items)), None, fields)
        if a.kind == "tuple":
            named = {key: held for key, held in (fields or {}).items() if not isinstance(key, int)}
            fields = {**named, **_join_beginnings(a, b)} or None
        return make(None, _join_elements(a, b), fields)
    return a if type(a) is type(b) and a.key == b.key else None


def beginning(value: Container) -> dict[int, Value]:
    """The first elements of a tuple or list, by index, as far as they are known."""
    if value.items is not None:
        return dict(enumerate(value.items))
    return {index: held for index, held in (value.fields or {}).items() if isinstance(index, int)}


def _join_beginnings(a: Container, b: Container) -> dict[int, Value]:
    """Of tuples that have grown by different numbers of elements, as `outputs` does where a branch adds to it."""
    others = beginning(b)
    return {index: join(held, others[index]) for index, held in beginning(a).items() if index in others}


def _join_elements(a: Container, b: Container) -> Value:
    if _is_empty(a):
        return b.element
    if _is_empty(b):
        return a.element
    return join(a.element, b.element)


def _is_empty(value: Container) -> bool:
    """Whether a container is known to hold nothing: a list without items, a dict that was written without entries."""
    return value.items == () or (
        value.kind == "dict" and value.of is None and value.fields is not None and not value.fields
    )


def _join_fields(
    a: Mapping[Any, Value] | None, b: Mapping[Any, Value] | None, missing: Value | None
) -> Mapping[Any, Value] | None:
    """The join by key. `missing` stands for what one side lacks; with None, the other side's value is taken."""
    if a is None or b is None:
        return a if b is None else b
    if a is b:
        return a
    fields = {}
    for key in {**a, **b}:
        its, other = a.get(key, missing), b.get(key, missing)
        fields[key] = other if its is None else its if other is None else join(its, other)
    return fields  # type: ignore[return-value]


def join_all(values: Iterable[Value]) -> Value:
    """The join of any number of values; UNKNOWN for none."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return UNKNOWN if result is None else result


def options(value: Value) -> tuple[Value, ...]:
    """The alternatives that a value stands for."""
    return value.options if isinstance(value, Choice) else (value,)


def tensor_in(value: Value) -> Tensor | None:
    """The Tensor that a value is or may be."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, Choice):
        for option in value.options:
            if isinstance(option, Tensor):
                return option
    return None


def as_input(value: Value, always: bool = True) -> Value:
    """The value behind a graph break: a tensor computed before it becomes an input of the next graph. Where the graph
    breaks on some runs only, a constant stays one, so that nothing is proved by its not being one."""
    if isinstance(value, Tensor):
        return value if value.graph_input or (value.constant and not always) else value.entering()
    if isinstance(value, Choice):
        if tensor_in(value) is None:
            return value
        return Choice(tuple(as_input(o, always) for o in value.options))
    if isinstance(value, Container) and (value.items or isinstance(value.of, Tensor)):
        items = None if value.items is None else tuple(as_input(v, always) for v in value.items)
        of = None if value.of is None else as_input(value.of, always)
        fields = value.fields
        if items is None and (known := beginning(value)):
            fields = {**(fields or {}), **{index: as_input(held, always) for index, held in known.items()}}
        differs = of is not value.of or any(a is not b for a, b in zip(items or (), value.items or (), strict=True))
        return value.with_parts(items, of, fields) if differs or fields is not value.fields else value
    return value


def is_known_number(tensor: Tensor) -> bool:
    """Whether Dynamo may know the value of a 0-d NumPy float, which int() and float() then read (torch 2.13)."""
    return tensor.ndarray and tensor.constant and dtype_kind(tensor.dtype) in ("float", None)


def is_known_input(tensor: Tensor) -> bool:
    """Whether it is a NumPy number that was there before tracing: Dynamo reads its value where a size, a bound, an
    index or an int is wanted, though not that of what is computed from it (torch 2.13).

    One read is certain. Of several, those of one kind mostly pass (`x[:n] + x[:n]`, `int(n) + int(n)`), but an index
    of a list or a mixture breaks the graph (`a[n] + a[n]`, `a[n] + int(n)`, `x[:n] + int(n)`). Reads are not counted,
    so that such a break is missed."""
    return tensor.graph_input and tensor.ndarray and tensor.constant


def present(value: Value) -> Value:
    """The value under a key of a dict, where the key is present: without ABSENT."""
    if isinstance(value, Choice) and ABSENT in value.options:
        kept = tuple(o for o in value.options if o is not ABSENT)
        return kept[0] if len(kept) == 1 else Choice(kept)
    return UNKNOWN if value is ABSENT else value


def may_be_none(value: Value) -> bool:
    """Whether a value is known to be None on some runs."""
    return any(isinstance(option, Const) and option.value is None for option in options(value))


def without_none(value: Value) -> Value:
    """The value where it is known not to be None."""
    if isinstance(value, Choice):
        kept = tuple(o for o in value.options if o is not NONE)
        return kept[0] if len(kept) == 1 else Choice(kept) if kept else UNKNOWN
    return value
