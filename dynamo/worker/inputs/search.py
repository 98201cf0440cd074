"""The search for arguments that one object takes: each try that fails says what to try next.

What an error asks for comes first, then what shows which dimension decides two sizes that differ, then what may get
around an error that says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from . import from_project
from .feedback import frames, repairs, solving
from .reading.shapes import Combination, Tensor, render
from .ways import Ways

TRIES = 48
MOST_PROBED = 5
"""Errors of one object's tries of which each dimension's part in them is looked for."""
LARGE = 1 << 20
"""Elements of inputs that are tried after all smaller ones: such a try may take most of the time that there is."""


class _Probe:
    """A try that has one dimension larger than another try, to learn what that decides."""

    def __init__(self, of: solving.Equation, combination: Combination, axis: solving.Axis, step: int = 1) -> None:
        self.of = of
        self.combination = combination
        self.axis = axis
        self.step = step
        self.size = solving.size_of(combination, axis)

    def made(self) -> Combination:
        return solving.resized(self.combination, self.axis, self.size + self.step)

    def solved(self, found: solving.Equation | None) -> Combination | None:
        """The other try with the size that the error asks for, where this dimension decides it."""
        size = solving.solution(self.of, found, self.size, self.step)
        return None if size is None else solving.resized(self.combination, self.axis, size)

    def wider(self, found: solving.Equation | None) -> _Probe | None:
        """Twice the size: where layers take steps of several elements, one more says little, or too much."""
        if self.step > 1 or self.size == 1 or found is None or found.place != self.of.place:
            return None
        return _Probe(self.of, self.combination, self.axis, self.size)


class _Try(NamedTuple):
    combination: Combination
    probe: _Probe | None = None


class Search:
    """What is to be tried on one object. `given` are inputs of the project; `function` is what is called."""

    def __init__(self, ways: Ways, function: Any, given: list[from_project.Inputs]) -> None:
        self.ways = ways
        self.function = function
        self.queue = [_Try(each) for each in (*(ways.given(*inputs) for inputs in given), *ways.shown())]
        self.later = [_Try(each) for each in ways.any_shape()]
        self.errors: set[str] = set()
        self.probed: set[solving.Equation] = set()

    def tries(self) -> Iterator[tuple[dict[str, str], Callable[[BaseException], None]]]:
        """Arguments as source text, each with what is to be told of a failure; those of the project come first."""
        seen: set[str] = set()
        number = 0
        while (self.queue or self.later) and number < TRIES:
            one = (self.queue or self.later).pop(0)
            texts = {name: render(value) for name, value in one.combination.items()}
            if repr(texts) not in seen:
                seen.add(repr(texts))
                number += one.probe is None
                yield texts, lambda error, one=one: self._failed(one, error)  # type: ignore[misc]

    def _failed(self, one: _Try, error: BaseException) -> None:
        said = str(error.__cause__ or error)
        new = said not in self.errors  # what fails in another way got further, most often
        self.errors.add(said)
        sizes = solving.equation(error)
        if one.probe is not None:
            made, wider = one.probe.solved(sizes), one.probe.wider(sizes)
            behind = [] if wider is None else [_Try(wider.made(), wider)]
            self.queue[:0] = [*self._small([] if made is None else [made]), *(behind if made is not None else [])]
            self.later[:0] = behind if made is None else []
            return
        better = self._small(self._better(one.combination, error, sizes))
        self.queue[:0] = [*better, *self._probes(one.combination, sizes)]
        guesses = self._small(repairs.guesses(error, one.combination))
        if new and len(self.errors) > 1:
            self.queue += guesses
        else:
            self.later[:0] = guesses

    def _small(self, made: Iterable[Combination]) -> list[_Try]:
        """Tries of these; large ones come after all else."""
        tries = [_Try(each) for each in made]
        self.later += [each for each in tries if _elements(each.combination) > LARGE]
        return [each for each in tries if _elements(each.combination) <= LARGE]

    def _better(self, tried: Combination, error: BaseException, sizes: solving.Equation | None) -> list[Combination]:
        """What the error asks for. Of a rank or a type it is most often that of what the failed statement reads."""
        found = [*repairs.after(error, tried), *self.ways.with_missing(error, tried)]
        if sizes is None:
            about = frames.blamed(error, self.function)
            found.sort(key=lambda each: _concerned(each, tried, about))
        return found

    def _probes(self, tried: Combination, sizes: solving.Equation | None) -> list[_Try]:
        if sizes is None or sizes in self.probed or len(self.probed) == MOST_PROBED:
            return []
        self.probed.add(sizes)
        probes = (_Probe(sizes, tried, axis) for axis in solving.axes(tried))
        return [_Try(each.made(), each) for each in probes]


def _concerned(made: Combination, before: Combination, about: list[str]) -> int:
    """The position among names of the one argument that was changed; behind them where it is another, or several."""
    other = [name.lstrip("*") for name in {**before, **made} if made.get(name) is not before.get(name)]
    return about.index(other[0]) if len(other) == 1 and other[0] in about else len(about)


def _elements(combination: Combination) -> int:
    return sum(math.prod(value.shape) for value in combination.values() if isinstance(value, Tensor))
