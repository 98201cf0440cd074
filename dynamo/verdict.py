"""Whether a mend passes: what was seen to differ must be among what it says differs.

A pure function of a comparison. Which of a mend's own words cover which kind of difference stands in one table.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from graphmend.dynamo.comparison import Comparison, Difference

KINDS: dict[str, frozenset[str]] = {
    "value": frozenset(),
    "rounding": frozenset({"rounding"}),
    "dtype": frozenset({"dtype", "type"}),
    "shape": frozenset({"shape"}),
    "strides": frozenset({"strides", "aliasing"}),
    "device": frozenset({"dtype"}),
    "aliasing": frozenset({"aliasing"}),
    "requires-grad": frozenset({"gradients", "zero-gradients"}),
    "gradients": frozenset({"gradients"}),
    "zero-gradients": frozenset({"zero-gradients", "gradients"}),
    "state": frozenset({"state"}),
    "argument-state": frozenset({"state", "aliasing"}),
    "flags": frozenset({"state", "gradients"}),
    "random": frozenset({"random"}),
    "exception": frozenset({"exception"}),
    "output-text": frozenset({"output", "type"}),  # a tensor is not written as a number is
    "output-order": frozenset({"output-order", "output"}),
    "other-inputs": frozenset({"callers"}),
}
"""Each kind of difference that a check may see, and the words by which a mend names it.

No word covers `value`: a mend that computes something else is wrong, whatever it says. `other-inputs` is whatever
differs on inputs of another rank or type than all that were given.
"""


class Judgement(NamedTuple):
    """What differs as the mend says, and what differs besides."""

    named: tuple[Difference, ...]
    unnamed: tuple[Difference, ...]

    @property
    def passes(self) -> bool:
        return not self.unnamed


def judge(comparison: Comparison, names: Collection[str] = ()) -> Judgement:
    """`names` are the differences that the mend names. A kind that is not in the table is covered by nothing."""
    named: list[Difference] = []
    unnamed: list[Difference] = []
    for item in _seen(comparison):
        covered = not KINDS.get(item.kind, frozenset()).isdisjoint(names)
        (named if covered else unnamed).append(item)
    return Judgement(tuple(named), tuple(unnamed))


def _seen(comparison: Comparison) -> tuple[Difference, ...]:
    """All that differs; lines that an older report gives without kinds are differences of values and of output."""
    if comparison.found:
        return comparison.found
    lines = [Difference("value", "", line) for line in comparison.differences]
    lines += [Difference("output-text", "compiled", f"does not print {line!r}") for line in comparison.silenced]
    return tuple(lines)
