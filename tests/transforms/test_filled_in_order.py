"""What a mask picks, filled from the first rows of a tensor: `masked_scatter_`, with the questions in front of it."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import bodies, function
from judge import judge, mend_text, torch

HELPERS = """
def restart(table, used, rows):
    unused = used < 0.5
    if not torch.any(unused):
        return
    n = int(unused.sum())
    table[unused] = rows[:n]
    used[unused] = 1.0


def fill(table, at, rows):
    turned = rows.flip(0)
    table[at] = turned[: at.sum()]


def expire(table, used, rows):
    unused = used < 0.5
    if not unused.any():
        return
    fill(table, unused, rows)


def replaced(table, m, rows):
    if m.sum() == 0:
        return table
    table = table.clone()
    table[m] = rows[: m.sum().item()]
    return table


"""
_CASES = bodies("""
# counted_in_the_slice
out = x.clone()
out[m] = y[: m.sum()]
return out

# guarded
n = m.sum().item()
if n > 0:
    x = x.clone()
    x[m] = y[:n]
return x * 2

# of_a_helper
table, used = x.clone(), x[:, 0].abs() * m
restart(table, used, y)
return table, used

# leaves_early_with_a_value
return replaced(x, m, y) + 1

# computed_behind_the_question
out = x.clone()
count = torch.count_nonzero(m).item()
if count == 0:
    return out
rows = torch.tanh(y)
out[m] = rows[:count]
return out

# asked_by_the_caller
table, used = x.clone(), x[:, 0].abs() * m
expire(table, used, y)
return table, used

# of_places
out = x * 1
at = m.nonzero().squeeze(1)
out[at] = y[: at.numel()]
return out

# computed
out = torch.zeros_like(x)
out[m] = y[0 : m.count_nonzero()] * 2
return out

# rows_at_places
out = torch.zeros_like(x)
order = y[:, 0].argsort(descending=True)
k = int(m.sum())
out[m] = y[order[:k]]
return out

# one_dimension
out = x[:, 0].clone()
out[m] = y[:, 1][: m.sum()]
return out
""")
_KEPT = bodies("""
# of_another_mask
out = x.clone()
out[m] = y[: (~m).sum()]
return out

# counted_before_it_changed
n = int((y[:4, 0] > 0.5).sum())
y.neg_()
out = x.clone()
out[y[:4, 0] > 0.5] = y[:n]
return out

# the_last_rows
out = x.clone()
out[m] = y[-m.sum() :]
return out

# computed_along_rows
out = x.clone()
out[m] = y[: m.sum()].cumsum(0)
return out

# drawn_as_many
out = x.clone()
n = int(m.sum())
out[m] = torch.randn(n, 3)
return out

# the_number_is_wanted
out = x.clone()
n = int(m.sum())
out[m] = y[:n]
return out, n

# a_function_does_more
if m.any():
    more(x, m, y)
return x

# more_than_stores
n = int(m.sum())
if n > 0:
    x = x.clone()
    x[m] = y[:n]
    x = x + 1
return x
""")


MORE = """
def more(table, m, rows):
    table[m] = rows[0]
    rows.add_(m.sum())


"""


def text(body: str) -> str:
    examples = "[(torch.rand(4, 3), torch.tensor([True, False, True, True]), torch.rand(5, 3))]"
    source = function(body, "x, m, y", examples)
    return source.replace("\n\n@torch.compile", HELPERS + MORE * ("more(" in body) + "@torch.compile", 1)


def inputs() -> list[tuple[Any, ...]]:
    masks = [True, False, True, True], [False] * 4, [True] * 4
    return [(torch.rand(4, 3, requires_grad=True), torch.tensor(m), torch.rand(5, 3)) for m in masks]


@pytest.mark.torch
@pytest.mark.parametrize("body", _CASES.values(), ids=_CASES)
def test_what_is_picked_is_filled_in_order(body: str) -> None:
    assert "masked_scatter_" in judge(text(body), inputs)


@pytest.mark.parametrize("body", _KEPT.values(), ids=_KEPT)
def test_other_values_are_not(body: str) -> None:
    own = text(body).split("def case")[1]
    after = mend_text(text(body)).source.text.split("def case")[1]
    assert "masked_scatter_" not in after
    # what a function does is decided on by itself
    assert after.count("if m.any()") == ("more(" not in body) * own.count("if m.any()")
