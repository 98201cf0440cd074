"""Edits of a text: ranges of offsets that were replaced, and their composition."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Edit(NamedTuple):
    """The text between two offsets was replaced by so many characters."""

    begin: int
    end: int
    length: int

    def then(self, later: Edit) -> Edit:
        """The composition of this edit and a later one, as one edit that covers both."""
        middle_end = max(self.begin + self.length, later.end)
        return Edit(
            min(self.begin, later.begin),
            self.end + middle_end - (self.begin + self.length),
            middle_end - later.end + later.begin + later.length - min(self.begin, later.begin),
        )


def difference(old: str, new: str) -> Edit:
    """The smallest single edit from one text to another: without their equal beginning and end."""
    begin = _longest(len(old), len(new), lambda low, high: old[low:high] == new[low:high])
    rest = len(old) - begin, len(new) - begin
    end = _longest(
        *rest,
        lambda low, high: old[len(old) - high : len(old) - low] == new[len(new) - high : len(new) - low],
    )
    return Edit(begin, len(old) - end, len(new) - end - begin)


def _longest(a: int, b: int, equal: Callable[[int, int], bool]) -> int:
    """The greatest length up to both at which two texts are equal, by halving: comparing slices is fast, comparing
    characters is not."""
    low, high = 0, min(a, b)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if equal(low, middle) else (low, middle - 1)
    return low
