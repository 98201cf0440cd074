"""Ascending offsets of a text that are shifted together behind an edit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence


class ShiftableOffsets:
    """A list of ascending numbers. All from one place on can be shifted at once: those behind the last shift are kept
    as they were plus one common shift, so shifts near one another cost nothing, however many numbers follow."""

    def __init__(self, numbers: Iterable[int]) -> None:
        self._numbers = list(numbers)
        self._pivot = len(self._numbers)
        self._shift = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> int:
        return self._numbers[index] + (self._shift if index >= self._pivot else 0)

    def __iter__(self) -> Iterator[int]:
        yield from self._numbers[: self._pivot]
        yield from [number + self._shift for number in self._numbers[self._pivot :]]

    def last_up_to(self, number: int) -> int:
        """The last index whose number is not greater; -1 where all are."""
        numbers, pivot = self._numbers, self._pivot
        if pivot < len(numbers) and number >= numbers[pivot] + self._shift:
            return bisect_right(numbers, number - self._shift, lo=pivot) - 1
        return bisect_right(numbers, number, hi=pivot) - 1

    def shift(self, index: int, by: int) -> None:
        """Shift all numbers from `index` on."""
        self._move_pivot(index)
        self._shift += by

    def splice(self, first: int, last: int, new: Sequence[int]) -> None:
        """Put other numbers in the place of some."""
        self._move_pivot(max(last, self._pivot))
        self._numbers[first:last] = new
        self._pivot += len(new) - (last - first)

    def _move_pivot(self, index: int) -> None:
        """Let the shift begin at `index`."""
        numbers, pivot, shift = self._numbers, self._pivot, self._shift
        index = min(index, len(numbers))
        if index < pivot:
            numbers[index:pivot] = [number - shift for number in numbers[index:pivot]]
        elif index > pivot:
            numbers[pivot:index] = [number + shift for number in numbers[pivot:index]]
        self._pivot = index
