"""The search for arguments that one object takes: each try that fails says what to try next.

What an error asks for comes first, then what shows which dimension decides two sizes that differ, then what may get
around an error that says nothing.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from . import from_project
from .feedback import frames, repairs, solving
from .reading.shapes import Combination, Tensor, render
from .ways import Ways

TRIES = 48
MOST_PROBED = 5
"""Errors of one object's tries of which each dimension's part in them is looked for."""
MOST_PROBED_QUICKLY = 24
QUICK_SECONDS = 2.0
"""The same while all tries together have taken no longer."""
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


class _Failure(NamedTuple):
    """Where a try failed, and why: the words of the error, and by how much two sizes differ that should not."""

    reached: frames.Reached = ()
    words: str = ""
    gap: int = 0

    def is_further(self, before: _Failure) -> bool:
        """Whether it tells of a better try than the failure before; the same error of other numbers is no progress."""
        return self.is_another(before) or (self.kind == before.kind and self.gap < before.gap)

    def is_another(self, before: _Failure) -> bool:
        """Whether it lies behind the failure before, or is another one at its place."""
        return self.reached > before.reached or (self.reached == before.reached and self.words != before.words)

    @property
    def kind(self) -> tuple[frames.Reached, str]:
        return self.reached, self.words


class _Try(NamedTuple):
    """Arguments to try, and the failure that led to them."""

    combination: Combination
    probe: _Probe | None = None
    after: _Failure = _Failure()


class Search:
    """What is to be tried on one object. `given` are inputs of the project, and all there are where they are `whole`;
    `function` is what is called.
    """

    def __init__(self, ways: Ways, function: Any, given: list[from_project.Inputs], *, whole: bool = False) -> None:
        self.ways = ways
        self.function = function
        told = [each for inputs in given for each in ways.given(*inputs)]
        more = [] if whole else [each for inputs in given for each in ways.optional(*inputs)]
        self.queue = [_Try(each) for each in (*more, *told, *(() if whole else ways.shown()))]
        self.first = len(told) if whole else len(more) + 1 if more else 0
        """How many of the queue are tried before anything that a failure leads to."""
        self.later = [] if whole else [_Try(each) for each in ways.any_shape()]
        self.errors: set[tuple[frames.Reached, str]] = set()
        self.probed: set[solving.Equation] = set()
        self._began = time.process_time()

    def tries(self) -> Iterator[tuple[dict[str, str], Callable[[BaseException], None]]]:
        """Arguments as source text, each with what is to be told of a failure; those of the project come first."""
        seen: set[str] = set()
        number = 0
        while (self.queue or self.later) and number < TRIES:
            one = (self.queue or self.later).pop(0)
            self.first = max(0, self.first - 1)
            texts = {name: render(value) for name, value in one.combination.items()}
            if repr(texts) not in seen:
                seen.add(repr(texts))
                number += one.probe is None
                yield texts, lambda error, one=one: self._failed(one, error)  # type: ignore[misc]

    def _failed(self, one: _Try, error: BaseException) -> None:
        said = str(error.__cause__ or error)
        sizes = solving.equation(error)
        gap = abs(sizes.one - sizes.other) if sizes is not None else 0
        failure = _Failure(frames.reached(error), re.sub(r"\d+", "", said), gap)
        new = failure.kind not in self.errors  # what fails in another way got further, most often
        self.errors.add(failure.kind)
        if one.probe is not None and not failure.is_another(one.after):
            self._probed(one, one.probe, sizes)
            return
        better = self._small(self._better(one.combination, error, sizes), failure)
        tries = [*better, *self._probes(one.combination, sizes, failure)]
        at = self._place_of(failure, one.after)
        self.queue[at:at] = tries
        guesses = self._small(repairs.guesses(error, one.combination))
        if new and len(self.errors) > 1:
            self.queue += guesses
        else:
            self.later[:0] = guesses

    def _place_of(self, failure: _Failure, before: _Failure) -> int:
        """Where in the queue belongs what a failure leads to: in front where it is further than the one before, else
        behind what else that one led to; at the end where it is the same error of other numbers.
        """
        if failure.is_further(before) and not self.first:
            return 0
        later = enumerate(self.queue[self.first :], self.first)
        others = (number for number, each in later if each.after.reached < failure.reached)
        return len(self.queue) if failure.reached == before.reached else next(others, len(self.queue))

    def _probed(self, one: _Try, probe: _Probe, sizes: solving.Equation | None) -> None:
        """The size that is known now is next; else the same dimension is made much larger, after what is guessed."""
        made, wider = probe.solved(sizes), probe.wider(sizes)
        behind = [] if wider is None else [_Try(wider.made(), wider, one.after)]
        if made is not None:
            self.queue[:0] = [*self._small([made], one.after), *behind]
        elif self._quick():
            self.queue += behind
        else:
            self.later[:0] = behind

    def _small(self, made: Iterable[Combination], after: _Failure = _Failure()) -> list[_Try]:  # noqa: B008
        """Tries of these; large ones come after all else."""
        tries = [_Try(each, None, after) for each in made]
        self.later += [each for each in tries if _elements(each.combination) > LARGE]
        return [each for each in tries if _elements(each.combination) <= LARGE]

    def _better(self, tried: Combination, error: BaseException, sizes: solving.Equation | None) -> list[Combination]:
        """What the error asks for. Of a rank or a type it is most often that of what the failed statement reads."""
        found = [*repairs.after(error, tried), *self.ways.with_missing(error, tried)]
        if sizes is None:
            about = frames.blamed(error, self.function)
            found.sort(key=lambda each: _concerned(each, tried, about))
        return found

    def _quick(self) -> bool:
        return time.process_time() - self._began < QUICK_SECONDS

    def _probes(self, tried: Combination, sizes: solving.Equation | None, after: _Failure) -> list[_Try]:
        most = MOST_PROBED_QUICKLY if self._quick() else MOST_PROBED
        if sizes is None or sizes in self.probed or len(self.probed) >= most:
            return []
        self.probed.add(sizes)
        probes = (_Probe(sizes, tried, axis) for axis in solving.axes(tried))
        return [_Try(each.made(), each, after) for each in probes]


def _concerned(made: Combination, before: Combination, about: list[str]) -> int:
    """The position among names of the one argument that was changed; behind them where it is another, or several."""
    other = [name.lstrip("*") for name in {**before, **made} if made.get(name) is not before.get(name)]
    return about.index(other[0]) if len(other) == 1 and other[0] in about else len(about)


def _elements(combination: Combination) -> int:
    return sum(math.prod(value.shape) for value in combination.values() if isinstance(value, Tensor))
