"""One traced call: what TorchDynamo guards on, of all that enters it."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, NamedTuple

from graphmend.analysis.driver.execution.members import is_module
from graphmend.analysis.driver.execution.objects import (
    Atom,
    Callable,
    ClassObject,
    Constant,
    Named,
    Object,
    Partial,
    Scope,
    Values,
    union,
)
from graphmend.analysis.driver.guards.atoms import Compute, Input, Path, Tensor, raw_of, tensor
from graphmend.analysis.driver.guards.facts import SPECIALISED_SIZES, WIDENED

if TYPE_CHECKING:
    from graphmend.analysis.driver.execution.interface import Machine
    from graphmend.analysis.driver.guards.moment import Moment
    from graphmend.analysis.driver.guards.variation import Place


class Guard(NamedTuple):
    """A graph is used again where `compute` gives `value`, or something that is not known."""

    path: Path
    compute: Compute
    value: object

    def holds(self, moment: Moment) -> bool:
        """Whether the guard lets a call use the graph, as far as known."""
        now = self.compute(moment)
        return now is ... or now == self.value


class Frame:
    """What was compiled of one function: its graphs' guards, and the last value seen on each path."""

    def __init__(self, dynamic: bool | None) -> None:
        self.dynamic = dynamic
        """The option `dynamic` of the compile site."""
        self.graphs: list[list[Guard]] = []
        self.choices: list[tuple[tuple[ast.AST, bool], ...]] = []
        """In which branches of unknown conditions each graph was compiled."""
        self.skipped = False
        """Whether the first call traced no operation: TorchDynamo (2.13) never compiles the function then."""
        self.seen: dict[Path, object] = {}
        self.calls = 0
        self.places: dict[ast.expr, Place] = {}
        """The calls in sight."""
        self.arguments: dict[str, Values] = {}
        """All that each argument is in the calls in sight."""

    def widens(self, path: Path, now: object) -> bool:
        """Whether TorchDynamo compiles for any value of a number or size, of which it has seen another one."""
        before = self.seen.setdefault(path, now)
        if self.dynamic is False:
            return False
        return self.dynamic is True or before is _ANY or before != now

    def called(self, node: ast.expr, place: Place, arguments: dict[str, Values]) -> None:
        """The function is called with these arguments."""
        self.calls += 1
        self.places.setdefault(node, place)
        for name, values in arguments.items():
            self.arguments[name] = union(self.arguments.get(name, ()), values)

    def open_sizes(self, path: Path) -> tuple[int, ...]:
        """The dimensions of a tensor in which graphs were compiled for several sizes."""
        found = (
            step[-1][1]
            for step, now in self.seen.items()
            if now is _ANY and step[:-1] == path and step[-1][0] == "size"
        )
        return tuple(sorted(dimension for dimension in found if isinstance(dimension, int)))

    def remember(self, path: Path, now: object) -> None:
        """A graph was compiled with this value."""
        before = self.seen.get(path, now)
        self.seen[path] = now if before == now else _ANY


_ANY = object()


class Trace:
    """The guards of a graph while it is traced. One that does not record has none: the call uses a graph again."""

    def __init__(self, machine: Machine, frame: Frame, moment: Moment, records: bool) -> None:
        self.machine = machine
        self.frame = frame
        self.moment = moment
        self.guards: list[Guard] = []
        self.scopes: set[int] = set()
        """The scopes that were made while tracing."""
        self.written: set[tuple[int, str]] = set()
        """(owner, name) of attributes and variables that the traced code has set."""
        self.computes = False
        """Whether something was done with what may be a tensor."""
        self._open = records
        self._paths: dict[int, Path] = {}
        self._kept: list[object] = []
        self._said: set[Path] = set()
        self._around: dict[int, Path] = {}

    def close(self) -> list[Guard]:
        """The guards; what is done with the inputs from now on concerns nobody."""
        self._open = False
        for guard in self.guards:
            if guard.path[-1][0] not in ("type", "many"):
                self.frame.remember(guard.path, self.moment.peek(guard.path))
        return self.guards

    def opened(self, scope: Scope) -> None:
        """A scope was made while tracing."""
        self._kept.append(scope)
        self.scopes.add(id(scope))

    def reaches(self, scope: Scope | None, path: Path) -> None:
        """A function that entered at `path` was defined in a scope."""
        while scope is not None and scope.function is not None:
            self._kept.append(scope)
            self._around.setdefault(id(scope), path)
            scope = scope.outer

    def around(self, scope: Scope) -> Path:
        """By which input a scope outside of the call is reached; the compiled function itself is none."""
        return self._around.get(id(scope), ())

    # -- inputs

    def given(self, values: Values, path: Path) -> Values:
        """What enters at `path`, known as an input from now on."""
        if len(values) != 1:
            return values
        atom = values[0]
        if isinstance(atom, Input) and atom.trace is self:
            return values
        if isinstance(atom, Constant):
            return (Input(raw_of(atom), (path,), lambda moment: _number(moment.peek(path)), self),)
        if isinstance(atom, (Tensor, Callable, Partial, Named, ClassObject)) and id(atom) not in self._paths:
            atom = copy.copy(atom)
        if isinstance(atom, (Tensor, Callable, Partial, Named, ClassObject, Object)):
            self._kept.append(atom)
            self._paths.setdefault(id(atom), path)
        return (atom,)

    def path(self, atom: Atom | None) -> Path | None:
        """Where an atom entered the call; None for one that was made in it."""
        return self._paths.get(id(atom))

    # -- guards

    def guard(self, path: Path, compute: Compute | None = None) -> None:
        """A graph holds for what is found at `path`, or for what `compute` makes of it."""
        if not self._open or (compute is None and path in self._said):
            return
        if compute is None:
            self._said.add(path)
            compute = _peeking(path)
        value = compute(self.moment)
        if value is not ...:
            self.guards.append(Guard(path, compute, value))

    def touch(self, atom: Atom) -> None:
        """Something is done with what entered the call."""
        self.computes |= not isinstance(atom, Constant)
        if not self._open:
            return
        if isinstance(atom, Input):
            self.uses(atom)
            return
        path = self.path(atom)
        if path is None:
            return
        if isinstance(atom, Tensor):
            self._tensor(atom, path)
        elif isinstance(atom, Object):
            self.guard(path)
            if atom.items is not None and atom.info is None and not is_module(self.machine, atom):
                self.guard((*path, ("length",)))
        else:
            self.guard(path)

    def touch_class(self, atom: Object | ClassObject) -> None:
        """An attribute is read: of what class it is, is guarded on."""
        path = self.path(atom)
        if path is not None and self._open:
            self.guard(path)

    def touch_all(self, values: Values, depth: int = 3, *, numbers: bool = True) -> None:
        """Something is done with values and with what they hold; without `numbers`, with all but these."""
        for atom in values:
            if numbers or not isinstance(atom, Constant):
                self.touch(atom)
            if isinstance(atom, Object) and depth and not is_module(self.machine, atom) and atom.info is None:
                path = self.path(atom)
                if atom.fields is not None and path is not None:
                    self.guard((*path, ("keys",)))
                held = [*enumerate(atom.items or ()), *(atom.fields or {}).items()]
                for key, inner in held:
                    given = self.given(inner, (*path, ("item", key))) if path is not None else inner
                    self.touch_all(given, depth - 1, numbers=numbers)

    def touch_keys(self, values: Values) -> None:
        """A mapping is iterated over."""
        path = self.path(values[0]) if len(values) == 1 else None
        if path is not None:
            self.guard((*path, ("keys",)))

    def uses(self, number: Input) -> None:
        """A number is computed with."""
        for path in number.paths:
            if path in self._said or not self._open:
                continue
            now = self.moment.peek(path)
            if now is not ... and self._widened(path, now):
                self._said.add(path)
                self.guard((*path, ("type",)), lambda moment, path=path: _type(moment.peek(path)))  # type: ignore[misc]
                self.frame.remember(path, now)
            else:
                self.guard(path)

    def decides(self, number: Input) -> None:
        """The value of a number is needed while tracing."""
        if self._open:
            self.uses(number)
            if any(self._widened(path, self.moment.peek(path)) for path in number.paths):
                self.guard(number.paths[0], number.compute)

    def decide_all(self, values: Values) -> None:
        """The values of numbers are needed while tracing."""
        for atom in values:
            if isinstance(atom, Input):
                self.decides(atom)

    def _widened(self, path: Path, now: object) -> bool:
        kind = "global" if path[0][0] == "global" else str(path[-1][0])
        if path[-1][0] == "size":
            if not isinstance(now, int) or now in SPECIALISED_SIZES:
                return False
            sized = tensor(self.moment.values(path[:-1]))
            marked = sized is not None and sized.marks.get(int(str(path[-1][1]))) == "dynamic"
            return self.frame.widens(path, now) or marked
        if kind == "attribute":
            owner = self.moment.values(path[:-1])
            kind = "module attribute" if any(is_module(self.machine, atom) for atom in owner) else kind
        of_type = now[0] if isinstance(now, tuple) and len(now) == 2 else None
        return of_type in WIDENED.get(kind, ()) and self.frame.widens(path, now)

    def _tensor(self, owner: Tensor, path: Path) -> None:
        if path in self._said:
            return
        for what in ("dtype", "rank", "gradient", "contiguous"):
            self.guard((*path, (what,)))
        for index, size in enumerate(owner.shape or ()):
            self.size(owner, (*path, ("size", index)), index, size)
        self.guard(path)

    def size(self, owner: Tensor, path: Path, index: int, size: int | None) -> None:
        """Guard on one size of a tensor."""
        mark = owner.marks.get(index)
        specialised = size is None or size in SPECIALISED_SIZES or mark == "static"
        if not specialised and (self.frame.widens(path, size) or mark == "dynamic"):
            self.guard((*path[:-1], ("many", index)), lambda moment: _is_many(moment.peek(path)))
            if self._open:
                self.frame.remember(path, size)
        else:
            self.frame.widens(path, size)
            self.guard(path)


def _peeking(path: Path) -> Compute:
    return lambda moment: moment.peek(path)


def _number(found: object) -> object:
    return found[1] if isinstance(found, tuple) and len(found) == 2 else ... if found is ... else found


def _type(found: object) -> object:
    return found[0] if isinstance(found, tuple) else ...


def _is_many(size: object) -> object:
    return size not in SPECIALISED_SIZES if size is not ... else ...
