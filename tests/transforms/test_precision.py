"""Code one step away from a form of the catalogue, in both directions: the mend stays right, or there is none."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import bodies, function
from judge import judge, mend_text, torch

_EXAMPLES = (
    "[(torch.tensor([0.5, -1.0, 2.0, 0.25]), torch.tensor([True, False, True, True]), torch.tensor([1, 2, 1, 0]))]"
)


def line() -> list[tuple[Any, ...]]:
    x = torch.tensor([0.5, -1.0, 2.0, 0.25]).requires_grad_()
    return [(x, torch.tensor([True, False, True, True]), torch.tensor([1, 2, 1, 0]))]


RIGHT = bodies("""
# what_is_returned_reads_the_loop_only_through_the_body
z = x * 1
for i in range(5):
    z = z * 2 + i
    if z.sum() > 10:
        return z + 1
return z

# distinct_of_an_expression
return x * torch.unique(n * 2).numel()

# mean_of_an_expression
return (x * 2)[x > 0].mean()

# lengths_of_an_expression
return torch.stack([part.sum() for part in x.split((n * 1).tolist())])

# two_repeats
return torch.repeat_interleave(x[:2], torch.tensor([2, 1])) * 2

# any_of_bools
b = x > 0
return x * b[m].any()

# the_loop_returns_its_variable
z = x * 1
for i in range(5):
    z = z * 2
    if z.sum() > 10:
        return z + i
return z
""")

REFUSED = bodies("""
# distinct_random_numbers
return x * torch.unique(torch.randint(0, 3, (9,))).numel()

# mean_by_a_random_mask
return x[torch.rand(4) > 0.5].mean()

# named_by_a_random_mask
p = x[torch.rand(4) > 0.5]
return p.sum() + p.mean()

# classes_of_a_random_table
return F.one_hot(n).float() @ torch.rand(3, 5) * x.sum()

# parts_of_bools
return [part.sum() for part in m.split(n.tolist())]

# parts_of_integers
return [part.sum() for part in n.int().split(n.tolist())]

# one_repeat
return torch.repeat_interleave(x, torch.tensor([2])) * 2

# repeats_that_are_stored_to
r = torch.tensor([1, 2, 1, 3])
r[0] = 3
return torch.repeat_interleave(x, r) * 2

# repeats_with_another_name
r = torch.tensor([1, 2, 1, 3])
s = r
s += 1
return torch.repeat_interleave(x, r) * 2

# any_of_floats
return x * x[m].any()
""")


@pytest.mark.torch
@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT)
def test_mended(body: str) -> None:
    judge(function(body, "x, m, n", _EXAMPLES), line)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refused(body: str) -> None:
    text = function(body, "x, m, n", _EXAMPLES)
    mended = mend_text(text)
    assert mended.source.text == text, mended.source.text


def test_places_of_a_shorter_mask_are_no_safe_mask() -> None:
    same = function("    m = x > 0\n    i = torch.where(m)[0]\n    return x[i].sum()", "x, m, n", _EXAMPLES)
    other = function("    i = torch.where(m)[0]\n    return x[i].sum()", "x, m, n", _EXAMPLES)
    found = [{a.fix.rewrite: a.fix.applicability for a in mend_text(text).applied} for text in (same, other)]
    assert [one.get("mask_index") for one in found] == ["safe", "unsafe"]
    assert not mend_text(same, unsafe=False).changed, "the mask alone does not remove the break"


STORES = bodies("""
# product_with_what_asks_for_gradients
y = x * 2.0
if n.sum() > 0:
    y.mul_(x)
return y

# augmented
y = torch.ones(4) * x
if n.sum() > 0:
    y *= x
return y

# masked_product
y = torch.ones(4) * x
y[m] *= 2 * x.sum()
return y

# masked_power
y = torch.ones(4) * x
y[m] = y[m] ** 2
return y

# masked_power_of_a_view
y = torch.ones(4) * x
z = y.view(-1)
y[m] = z[m] ** 2
return y

# product_in_a_loop
y = torch.ones(4) * x
for i in range(4):
    y *= x + 2
    if y.sum() > 10:
        break
return y

# guard_of_a_store
y = x * 1
m = x > 0
if m.any():
    y[m] = 0
return y
""")

_UNSAFE = bodies("""
# old_value_is_needed_behind_a_guard
y = x.exp()
if m.any():
    y[m] = 0
return y

# a_leaf_behind_a_guard
if m.any():
    x[m] = 0
return x * 2

# read_before_the_guard
y = x * 1
z = y * x
if m.any():
    y[m] = 0
return y + z

# old_value_is_needed_on_one_side
y = x.exp()
if n.sum() > 0:
    y.mul_(2)
return y

# the_other_side_reads_it
y = x * 1
z = x * 2
if n.sum() > 0:
    y.mul_(2)
else:
    z = y * x
return y + z

# it_reads_itself
y = x * 1
if n.sum() > 0:
    y.mul_(y)
return y
""")


@pytest.mark.torch
@pytest.mark.parametrize("body", STORES.values(), ids=STORES)
def test_backward_of_a_store_stays_possible(body: str) -> None:
    judge(function(body, "x, m, n", _EXAMPLES), line)


@pytest.mark.torch
@pytest.mark.parametrize("name", ["product_with_what_asks_for_gradients", "guard_of_a_store"])
def test_without_gradients_a_new_tensor_is_written_to_safely(name: str) -> None:
    text = function(STORES[name], "x, m, n", _EXAMPLES).replace("def case(", "@torch.no_grad()\ndef case(")
    judge(text, line, unsafe=False)


@pytest.mark.parametrize("body", _UNSAFE.values(), ids=_UNSAFE)
def test_a_write_that_backward_may_notice_is_never_safe(body: str) -> None:
    text = function(body, "x, m, n", _EXAMPLES)
    assert mend_text(text, unsafe=False).source.text == text
    assert mend_text(text).changed


@pytest.mark.parametrize("name", ["old_value_is_needed_behind_a_guard", "old_value_is_needed_on_one_side"])
def test_without_gradients_the_same_write_is_safe(name: str) -> None:
    body = _UNSAFE[name].replace("if m.any", "m = y > 1\n    if m.any")  # a mask that is known to fit
    text = function(body, "x, m, n", _EXAMPLES).replace("def case(", "@torch.no_grad()\ndef case(")
    assert mend_text(text, unsafe=False).changed
