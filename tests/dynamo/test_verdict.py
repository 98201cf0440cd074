"""What passes: a comparison is made by hand, nothing is run."""

from __future__ import annotations

import pytest

from graphmend.dynamo.comparison import Comparison, Difference
from graphmend.dynamo.verdict import KINDS, judge
from graphmend.dynamo.worker.comparison import kinds

ROUNDING = Difference("rounding", "given: result", "differs by rounding")
STATE = Difference("state", "given: self.steps", "is 0 instead of 1")


def comparison(*found: Difference) -> Comparison:
    return Comparison(3, tuple(item.line for item in found), found=found)


def test_both_sides_of_the_border_know_the_same_kinds() -> None:
    assert tuple(KINDS) == kinds.KINDS


@pytest.mark.parametrize(
    ("found", "names", "named", "unnamed"),
    [
        ((), (), (), ()),
        ((ROUNDING,), (), (), (ROUNDING,)),
        ((ROUNDING,), ("rounding", "dtype"), (ROUNDING,), ()),
        ((ROUNDING, STATE), ("rounding",), (ROUNDING,), (STATE,)),
        ((Difference("zero-gradients", "", ""),), ("gradients",), (Difference("zero-gradients", "", ""),), ()),
        ((Difference("value", "", ""),), tuple(KINDS), (), (Difference("value", "", ""),)),
        ((Difference("unheard of", "", ""),), ("unheard of",), (), (Difference("unheard of", "", ""),)),
    ],
)
def test_what_is_seen_must_be_named(
    found: tuple[Difference, ...],
    names: tuple[str, ...],
    named: tuple[Difference, ...],
    unnamed: tuple[Difference, ...],
) -> None:
    judged = judge(comparison(*found), names)
    assert (judged.named, judged.unnamed) == (named, unnamed)
    assert judged.passes == (not unnamed)


def test_lines_without_kinds_do_not_pass() -> None:
    assert not judge(Comparison(3, ("value 0 differs",))).passes
    assert not judge(Comparison(3, silenced=("size 2",))).passes
    assert judge(Comparison(3, silenced=("size 2",)), ("output",)).passes
