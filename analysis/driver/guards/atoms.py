"""What recorded calls compute with beside the atoms of driver code: numbers that enter a traced call, and tensors."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Protocol

from graphmend.analysis.driver.execution.objects import Atom, Constant, Values

if TYPE_CHECKING:
    from graphmend.analysis.program.definitions import ClassInfo

#: one step from a value to a part of it: ("attribute", "steps"), ("item", 0), ("size", 1)
Step = tuple[Hashable, ...]
#: where a value enters a traced call: its first step is an argument, a global, a variable around it, or a mode
Path = tuple[Step, ...]


class Sight(Protocol):
    """What a call finds."""

    def peek(self, path: Path) -> object:
        """What a guard on `path` compares; `...` where that is not known."""


#: the value that something has in another call; `...` where that is not known
Compute = Callable[[Sight], object]


class Listener(Protocol):
    """Who is told what a traced call does with its inputs."""

    def uses(self, number: Input) -> None:
        """A number is computed with."""

    def decides(self, number: Input) -> None:
        """The value of a number is needed while tracing."""


class Input(Constant):
    """A number, string, bool or None that enters a traced call, or that is computed from such ones.

    Whoever reads `value` lets TorchDynamo's trace depend on it; passing it on does not.
    """

    __slots__ = ("compute", "paths", "raw", "trace")

    def __init__(self, raw: object, paths: tuple[Path, ...], compute: Compute, trace: Listener) -> None:
        self.raw = raw
        self.paths = paths
        self.compute = compute
        self.trace = trace

    @property
    def value(self) -> object:  # type: ignore[override]
        """The value, which the trace depends on from now on."""
        self.trace.decides(self)
        return self.raw

    def __eq__(self, other: object) -> bool:
        raw = raw_of(other)
        return isinstance(other, Constant) and type(self.raw) is type(raw) and self.raw == raw

    def __hash__(self) -> int:
        return hash((type(self.raw), self.raw))


class Drawn(Constant):
    """A number that is drawn at random, or computed from one: `value` is one that it may be."""

    __slots__ = ()


def raw_of(atom: object) -> object:
    """The value of a constant, on which nothing depends; `...` of anything else."""
    if isinstance(atom, Input):
        return atom.raw
    return atom.value if isinstance(atom, Constant) else ...


def only(values: Values) -> object:
    """The value of the one constant that values are, on which nothing depends; `...` where there is none."""
    return raw_of(values[0]) if len(values) == 1 else ...


class Same:
    """Something that equals itself alone; `info` is the class that it is, where it is one of the program."""

    __slots__ = ("info", "of")

    def __init__(self, of: object, info: ClassInfo | None = None) -> None:
        self.of = of
        self.info = info

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.of is other.of

    def __hash__(self) -> int:
        return id(self.of)


Size = int | None
Shape = tuple[Size, ...]


class Numbers(Atom):
    """An array of NumPy, of one dimension, or a `scalar` of it, whose numbers driver code wrote down. TorchDynamo does
    not guard on them: it makes a tensor of either.
    """

    __slots__ = ("drawn", "numbers", "scalar")

    def __init__(self, numbers: tuple[int | float, ...], *, scalar: bool = False, drawn: bool = False) -> None:
        self.numbers = numbers
        self.scalar = scalar
        self.drawn = drawn
        """Whether they are drawn at random, and these are some that it may be."""


class Tensor(Atom):
    """A tensor: its sizes, dtype, whether it requires gradients and whether it is contiguous, None where not known.

    `marks` says by dimension what `mark_dynamic` and `mark_static` were told of it; "parameter" where its sizes are
    those of a module's parameter.
    """

    __slots__ = ("contiguous", "drawn", "dtype", "gradient", "marks", "numbers", "shape")

    def __init__(
        self,
        shape: Shape | None = None,
        dtype: str | None = None,
        gradient: bool | None = False,
        contiguous: bool | None = True,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.gradient = gradient
        self.contiguous = contiguous
        self.marks: dict[int, str] = {}
        self.numbers: tuple[int | float, ...] | None = None
        """What it holds, of at most one dimension, where driver code wrote it down or drew it."""
        self.drawn = False
        """Whether these are drawn at random."""

    def of_shape(self, shape: Shape | None) -> Tensor:
        """Another contiguous tensor of the same kind."""
        return Tensor(shape, self.dtype, self.gradient)


def tensor(values: Values) -> Tensor | None:
    """The one tensor that values are."""
    return values[0] if len(values) == 1 and isinstance(values[0], Tensor) else None
