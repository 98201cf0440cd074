"""What a mask picks, and sizes that the code knows: judged on tensors of one and two dimensions."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import bodies, function
from judge import judge, mend_text, torch

_EXAMPLES = (
    "[(torch.tensor([0.5, -1.0, 2.0, 0.25]), torch.tensor([True, False, True, True]), torch.tensor([1, 2, 1, 0]))]"
)
_ROWS = "[(torch.ones(4, 4), torch.tensor([True, False, True, True]), torch.tensor([1, 2, 1, 0]))]"


def line() -> list[tuple[Any, ...]]:
    x = torch.tensor([0.5, -1.0, 2.0, 0.25]).requires_grad_()
    return [(x, torch.tensor([True, False, True, True]), torch.tensor([1, 2, 1, 0]))]


def rows() -> list[tuple[Any, ...]]:
    x = torch.randn(4, 4).requires_grad_()
    return [(x, torch.tensor([True, False, True, True]), torch.tensor([1, 2, 1, 0]))]


PICKED = bodies("""
# median
return x[m].median()

# bound_to_another_mask
p = x[m]
m = ~m
return p.sum() + m.sum()

# of_a_table
p = x[m] * torch.arange(4)[n[m]]
return p.sum()

# squares
return (x[m] ** 2).mean()

# roots_of_the_positive
return x[x > 0].sqrt().sum()

# logarithms_of_the_positive
return torch.log(x[x > 0]).mean()

# difference
y = x * 2
return ((x[m] - y[m]) ** 2).sum()

# loss
y = x * 2
return F.mse_loss(x[m], y[m])

# largest
return x[m].max() + x[m].min()

# largest_integer
return n[m].max() + x

# product
return x[m].prod()

# norm
return x[m].norm()

# named
p = x[m]
return p.sum() + p.abs().mean()

# function
return torch.sum(x[m])

# selected
return x.masked_select(m).mean()

# places
i = torch.where(m)[0]
return x[i].sum()

# places_stored
y = x * 2
i = m.nonzero().squeeze(-1)
y[i] = x[i] * 3
return y

# guard_of_a_store
y = x * 1
if m.any():
    y[m] = x[m] * 2
return y

# copy_behind_a_guard
if m.sum() > 0:
    x = x.clone()
    x[m] = 0
return x * 2
""")

SIZES = bodies("""
# first
return x + m.nonzero()[0]

# first_of_a_tuple
return x + torch.where(m)[0][0]

# classes
table = torch.arange(15.0).reshape(3, 5)
return F.one_hot(n).float() @ table * x.sum()

# repeats
return torch.repeat_interleave(x, torch.tensor([1, 2, 1, 3])) * 2

# named_repeats
r = torch.tensor([1, 2, 1, 3])
return x.repeat_interleave(r, dim=0) * 2

# bins
return torch.bincount(n, minlength=4) + x

# distinct
return x * torch.unique(n).numel()

# sums_of_parts
return torch.stack([part.sum() for part in x.split(n.tolist())])

# pairs
return torch.combinations(x, r=2, with_replacement=True)

# sorted_apart
return torch.cat((x[m], x[~m]), dim=0)
""")

ROWS = bodies("""
# total
return x[m].sum()

# mean_of_all
return x[m].mean()

# over_the_rows
return x[m].sum(0)

# mean_over_the_rows
return x[m].mean(dim=0)

# stored
y = x * 1
y[m] = x[m] * 2
return y

# means_of_parts
return [part.mean(0) + 1 for part in x.split(n.clamp(min=1).tolist())] if x.shape[0] == 5 else x[m].sum()
""")

REFUSED = bodies("""
# used_as_they_are
return x[m] * 2

# another_mask
return (x[m] * x[~m]).sum()

# no_derivative_at_one
return torch.acos(x[m]).sum()

# running_maximum
return x[m].cummax(0).values.sum()

# changed_before_it_is_used
p = x[m]
m.logical_not_()
return p.sum() + m.sum()

# places_that_are_read
i = torch.where(m)[0]
return x[i].sum() + i.float().mean()

# parts_that_are_kept
return list(x.split(n.tolist()))
""")


@pytest.mark.torch
@pytest.mark.parametrize("body", PICKED.values(), ids=PICKED)
def test_picked(body: str) -> None:
    judge(function(body, "x, m, n", _EXAMPLES), line)


@pytest.mark.torch
@pytest.mark.parametrize("body", SIZES.values(), ids=SIZES)
def test_size(body: str) -> None:
    judge(function(body, "x, m, n", _EXAMPLES), line)


@pytest.mark.torch
@pytest.mark.parametrize("body", ROWS.values(), ids=ROWS)
def test_rows(body: str) -> None:
    judge(function(body, "x, m, n", _ROWS), rows)


@pytest.mark.torch
@pytest.mark.parametrize("body", PICKED.values(), ids=PICKED)
def test_a_mask_of_unknown_rank_is_never_taken_for_another(body: str) -> None:
    text = function(body, "x, m, n")
    if mend_text(text).changed:
        judge(text, rows if "nonzero" not in body and "where" not in body else line)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refusal(body: str) -> None:
    text = function(body, "x, m, n", _EXAMPLES)
    mended = mend_text(text)
    assert mended.source.text == text, mended.source.text


@pytest.mark.parametrize("call", ["torch.repeat_interleave(x, n)", "F.one_hot(n)"])
def test_a_size_that_is_not_in_the_code_is_shown(call: str) -> None:
    from graphmend.analysis.check import check
    from graphmend.analysis.syntax.source import Source
    from graphmend.transforms.mend import mend

    text = function(f"    return {call} * 2", "x, m, n", _EXAMPLES)
    result = check(Source(text, "model.py"))
    (finding,) = result.findings
    answers = mend(finding, result.facts(finding))
    assert {getattr(a, "applicability", None) for a in answers} == {"display"}
    assert "=..." in answers[0].edits()[0].text
    assert not mend_text(text).changed


_LAYER = """\
import torch
from torch import nn
from torch.nn import MSELoss as Loss


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x: torch.Tensor, y: torch.Tensor):
        m = x > 0
        return self.loss(x[m], y[m])


net = torch.compile(Net())
"""


@pytest.mark.parametrize(
    ("made", "ends"),
    {
        "self.loss = nn.MSELoss()": ".to(x.dtype)",
        'self.loss = nn.MSELoss(reduction="sum")': ".sum()",
        'self.loss = Loss(reduction="sum"); self.other = nn.MSELoss()': ".sum()",
        'self.loss = nn.MSELoss(); self.loss.reduction = "sum"': None,
        'self.loss = nn.MSELoss(); setattr(self.loss, "reduction", "sum")': None,
        "self.loss = nn.MSELoss(**{})": None,
        'self.loss = nn.MSELoss() if torch.cuda.is_available() else nn.MSELoss(reduction="sum")': None,
        'self.loss = nn.MSELoss(); self.loss = nn.MSELoss(reduction="sum")': None,
    }.items(),
)
def test_a_layer_reduces_as_it_was_made(made: str, ends: str | None) -> None:
    mended = mend_text(_LAYER.format(made=made))
    assert mended.changed == (ends is not None)
    if ends is not None:
        assert mended.source.text.split("net =")[0].rstrip().endswith(ends)
