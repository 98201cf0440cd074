"""A safe mend of a number, a mask or an index is exact to the bit, on every dtype; what is not is refused or named."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bodies import bodies, function  # noqa: E402
from judge import judge, mend_text, nested, run  # noqa: E402

pytestmark = pytest.mark.torch

_EXAMPLES = "[(torch.tensor([1.5, -2.0, 3.0]), torch.tensor(1))]"


def values() -> list[tuple[Any, ...]]:
    """What a parameter that is only known to be a tensor may be."""
    made: list[Any] = [
        torch.tensor([1.5, -2.0, 3.0]), torch.tensor([0.1, 0.0, 0.0]), torch.tensor([1, -2, 3]),
        torch.tensor([1.0, 2.0, 3.0]).half(), torch.tensor([1.0, 2.0, float("nan")]),
        torch.tensor([2.0, 1.0, 3.0]).double(),
        torch.tensor([1, 2, 3], dtype=torch.uint8), torch.tensor([True, False, True]),
    ]  # fmt: skip
    return [(x, torch.tensor(1)) for x in made]


def floats() -> list[tuple[Any, ...]]:
    return values()[:2]


EXACT = bodies("""
# a_number_stays_what_the_slot_held
x = x.flatten().float() * 1
first = x[0].item()
x[0] = 0
return x + first

# numbers_are_swapped
x = x.flatten().float() * 1
a, b = x[0].item(), x[1].item()
a, b = b, a
x.zero_()
return (x + 1) * a - b * (x + 2)

# a_float_is_compared_as_a_double
x = x.flatten().float()
s = x.sum().item()
if s > 0.1:
    x = x * 2
else:
    x = x * 3
return x

# a_float_is_computed_with_as_a_double
x = x.flatten().float()
s = x.sum().item()
return x * (s * 3 + 0.1)

# a_float_of_whole_numbers
x = x.flatten().double()
s = float(x.long().sum())
return x * s

# a_count
x = x.flatten().float()
n = len(x[x > 0])
return x * n + n

# a_guard
with torch.no_grad():
    y = x.flatten().float() * 1
    m = y > 1
    if m.any():
        y[m] = y[m] * 2 + 1
    return y

# whole_numbers_under_a_mask
with torch.no_grad():
    y = x.flatten().long() * 1
    y[y > 1] += 2
    return y

# sorted_apart
x = x.flatten()
m = x > 0
return torch.cat([x[m], x[~m]])

# the_place_of_the_greatest
x = x.flatten().float()
return x[x.argmax()] * 2
""")

REFUSED = bodies("""
# functions_chosen_from_a_dictionary_that_changes
acts = {"relu": torch.relu, "tanh": torch.tanh}
f = acts["relu"] if x.mean() > 0 else acts["tanh"]
acts["relu"] = torch.neg
return f(x)

# functions_chosen_from_a_dictionary_that_is_handed_on
acts = {"relu": torch.relu, "tanh": torch.tanh}
f = acts["relu"] if x.mean() > 0 else acts["tanh"]
for name in list(acts):
    acts.update({name: torch.neg})
return f(x)

# a_bool_is_counted
f = (x.flatten() > 0).any().item()
return x.flatten().float() * (f + f)

# once_compiled_a_float
n = x.flatten().long().max().item()
return torch.full((2,), n)

# a_try_sees_the_exception
try:
    s = x.item()
except RuntimeError:
    s = 0.0
return torch.ones(2) * s

# in_place_by_position
with torch.no_grad():
    y = x.flatten().float() * 1
    z = y * 1
    m = y < 1
    z[m] = F.relu(y[m], True)
    return z, y

# another_dtype_raises
with torch.no_grad():
    y = x.flatten().float() * 1
    m = y > 1
    y[m] = y[m].double()
    return y

# what_is_read_is_written_to
x[k.item()].mul_(2)
return x

# what_is_read_is_written_to_by_a_name
row = x[k.item()].view(-1)
row.add_(1)
return x

# an_index_that_is_a_bool
return x[bool((x > 0).any())]
""")

#: what differs: the kind, and what of it
NAMED = bodies("""
# rounding__a_quotient
x = x.flatten().float()
s = x.max().item()
return s / x

# rounding__a_power
x = x.flatten().float()
s = x[0].item()
return x.abs() ** s

# rounding__a_softmax_of_what_a_mask_picks
with torch.no_grad():
    y = x.flatten().float() * 1
    m = y > 1
    y[m] = y[m].softmax(0)
    return y

# exception__a_negative_power
x = x.flatten().long()
return x ** x.min().item()

# output__a_float_warns
x = x.flatten().float()
return x * float(x.sum())

# exception__what_a_dtype_cannot_hold
y = torch.zeros(3, dtype=torch.uint8)
y[0] = x.flatten().long().max().item()
return y

# exception__whole_numbers_in_place
m = x > 0
x[m] += 0.5
return x

# exception__a_mask_of_another_shape
return (x > 0)[x[:1] > 0].any()

# output__a_guard_of_expanded_memory
with torch.no_grad():
    m = x > 1
    if m.any():
        x[m] = x[m] * 2
    return x

# shape__an_index_that_may_be_a_bool
return x[k.item()] * 2

# dtype__the_imaginary_part_of_a_number
return k * x.mean().item()

# aliasing__a_row
return x[k.long().item()]
""")


@pytest.mark.parametrize("body", EXACT.values(), ids=EXACT)
def test_a_safe_mend_is_exact(body: str) -> None:
    text = function(body, "x: torch.Tensor, k: torch.Tensor", _EXAMPLES)
    mended = mend_text(text, unsafe=False)
    assert mended.changed, [reason for _, reason in mended.left]
    before, after = nested(text), nested(mended.source.text)
    for i in range(len(values())):
        assert repr(run(after, values()[i])) == repr(run(before, values()[i])), mended.source.text
    judge(text, floats, unsafe=False)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refused(body: str) -> None:
    text = function(body, "x: torch.Tensor, k: torch.Tensor", _EXAMPLES)
    mended = mend_text(text)
    assert mended.source.text == text, mended.source.text


@pytest.mark.parametrize(("name", "body"), NAMED.items(), ids=NAMED)
def test_named(name: str, body: str) -> None:
    text = function(body, "x: torch.Tensor, k: torch.Tensor")
    assert mend_text(text, unsafe=False).source.text == text
    kinds = {d.kind for a in mend_text(text).applied for d in a.fix.differences}
    assert name.partition("__")[0] in kinds


def test_a_reduction_of_picked_elements_is_mended_before_what_it_is_part_of() -> None:
    body = "    x = x.flatten().float()\n    p = x[x > 0]\n    return ((p - p.mean()) ** 2).mean()"
    judge(function(body, "x, k", _EXAMPLES), floats)


def test_a_softmax_of_what_a_mask_picks_is_computed_under_the_mask() -> None:
    body = NAMED["rounding__a_softmax_of_what_a_mask_picks"]
    assert "softmax" in judge(function(body, "x: torch.Tensor, k: torch.Tensor", _EXAMPLES), floats)


def test_positions_are_no_mask() -> None:
    body = "    y = x.reshape(2, 2)\n    at = (y > 0.1).nonzero(as_tuple=True)[0]\n    y[at] = y[at]\n    return y"
    text = function(body, "x: torch.Tensor")
    assert mend_text(text).source.text == text


def test_a_function_of_the_file_is_not_the_builtin_of_its_name() -> None:
    text = (
        "import torch\n\n\ndef float(v):\n    return v.add_(1)\n\n\n"
        "@torch.compile\ndef case(x: torch.Tensor):\n    print(x.item(), float(x))\n    return x\n"
    )
    assert mend_text(text, unsafe=False).source.text == text
