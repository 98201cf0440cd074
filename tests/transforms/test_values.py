"""Counts, sizes and indices that values decide, and what masks pick in several dimensions: mended and judged."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import bodies, function
from judge import judge, mend_text, nested, torch

_PARAMETERS = "x, m, n, table, held"
_INPUTS = (
    "[(torch.randn(6, 3), torch.tensor([True, False, True, True, False, True]), torch.tensor([1, 2, 3]), "
    "torch.randn(2, 4, 3), torch.rand(2, 4) > 0.5)]"
)


def inputs() -> list[tuple[Any, ...]]:
    m, n = torch.tensor([True, False, True, True, False, True]), torch.tensor([1, 2, 3])
    held = torch.tensor([[True, False, True, True], [False, False, True, False]])
    one = (torch.randn(6, 3).requires_grad_(), m, n, torch.randn(2, 4, 3).requires_grad_(), held)
    return [one, (torch.randn(6, 3), ~m, torch.tensor([4, 0, 2]), torch.randn(2, 4, 3), ~held)]


FORMS = bodies("""
# counted_by_two
seen = torch.zeros(4, 5)
for i, j in zip(n.tolist(), n.flip(0).tolist()):
    seen[i - 1, j] += 1
return seen / seen.sum()

# read_by_two
i, j = n.argmax().item(), n.argmin().item()
return table[0, i, j] + table[:, i, j].sum() + x[i, j]

# read_around_a_slice
i, j = n.argmax().item(), n.argmin().item()
return table[n.min().item() - 1, :, i] * 2 - j

# stored_by_two
i, j = n.argmax().item(), n.argmin().item()
y = table.clone()
y[0, i] = x[0]
y[1, i, j] = 2.0
return y

# greater_of_two_that_are_picked
mask = x > 0
p, q = x[mask], (x.abs() + 1)[mask]
ratio = torch.max(p / q, q / (p + 1))
return (ratio < 1.25).float().mean(), p.minimum(q).mean() + torch.min(p, q).sum(), p.max(q).sum()

# row_stored_in_all
y, z = x.clone(), x.clone()
y[m] = table[0, 0].detach()
z[x > 0] += 2 * n.sum()
places = m.nonzero().squeeze(1)
z[places] *= table[1, 0].detach()
return y + z

# numbers_of_a_list
scales = [0.25, 0.5, 1.0, 2.0, 4.0]
return x * scales[int(n[0])] + (1, 2, 3)[n.argmax().item()]

# all_but_the_diagonal
similar = x @ x.t()
same = torch.eye(similar.shape[0], dtype=torch.bool)
others = similar[~same].view(similar.shape[0], -1)
return others.logsumexp(1), similar[torch.eye(6).bool()], (x @ x.t()).exp()[torch.eye(6) == 0].view(6, 5).softmax(1)

# as_many_as_viewed
n_rows = x.shape[0]
upper = torch.arange(3) > 0
wanted = upper.expand(n_rows, 3)
return x[wanted].view(n_rows, 2), table[:, 0][wanted[:2]].reshape((2, 2)).cumsum(1)

# slices_from_the_end
k = n.argmax().item()
y = x.clone()
y[..., :k] = 0.0
total = table[..., :k].sum(-1)
mean = table[..., k:, :].mean()
return y, total, mean, x[..., k:].sum()

# numbers_of_a_tuple
low, high = x.min().item(), x.max().item()
first, last = x[0, 0].item(), x[5, 2].item()
return x.detach() - torch.tensor([low, high, first + last])

# numpy_root
return x / np.sqrt(n.sum().item()) + np.log1p(n.max().item())

# numpy_of_a_float
scale = np.exp(x[0, 0].item())
return x * scale - np.abs(x[1, 1].item())

# numpy_floor
return x + np.floor(x[0, 0].item())

# float_below_a_number
return x.sum() / float((x > 0).sum()), -x[0].mean() * float(n.max()), (x * 2).sum(0) / float(n.sum())

# float_below_a_loss
loss = F.mse_loss(x, x.flip(0), reduction="none")
return loss.sum() / max(1.0, float(m.sum()))

# float_below_what_is_picked
return -x[:, 0][m].sum() / float(m.sum())

# elements_of_places
return x / max((x > 0).nonzero().numel(), 1)

# elements_of_places_in_a_line
at = torch.nonzero(held).flatten()
return x * (at.size(0) + 1)

# rows_of_places_in_a_column
at = torch.argwhere(held)[:, 1]
return x * (len(at) + 1)

# number_of_a_name
at = m.nonzero().squeeze(-1)
count = at.numel()
return x.sum() / count

# selected
at = m.nonzero().squeeze(1)
return x.index_select(0, at).mean(dim=0)

# selected_at_once
return torch.index_select(x, 0, torch.where(m)[0]).sum()

# selected_and_added
at = torch.where(m)[0]
out = torch.zeros(6, 3)
out.index_add_(0, at, x.index_select(0, at) * 2)
return out

# rows_by_matrices
out = torch.zeros_like(x)
for k, w in enumerate((x[:3], x[3:])):
    at = (m == (k == 0)).nonzero(as_tuple=True)[0]
    out[at] = x[at] @ w
return out

# mean_of_a_table
return table[held].mean(0), table[held].sum(dim=0)

# spread_of_a_table
return table[held].var(dim=0), table[held].std(0, unbiased=False)

# extremum_of_a_table
return table[held].amax(0) - table[held].amin(dim=0)

# bins
return torch.bincount(n, minlength=8) / 3

# bins_of_a_method
return n.bincount(None, 8) / 3

# bins_with_weights
w = n.float()
return torch.bincount(n, weights=w, minlength=8) * 2

# bins_under_a_mask
k = (n * 2)[:, None].expand(3, 4)
picks = k > 2
return torch.bincount(k[picks], minlength=9) + 1

# bins_of_two
k = n[:, None].expand(3, 4)
j = n[:, None].flip(0).expand(3, 4)
picks = k > 1
a, b = k[picks], j[picks]
return torch.bincount(5 * a + b, minlength=30).reshape(5, 6)

# repeats_added
part = torch.repeat_interleave(torch.arange(3), n)
return torch.zeros(3, 3).index_add(0, part, x)

# rows_compared
y = table[1:, :, :].expand(2, 4, 3)
return (1 - F.cosine_similarity(table[held], y[held], dim=-1)).mean()

# rows_compared_by_name
a, b = x[m], x.flip(0)[m]
return F.cosine_similarity(a, b).sum() + F.pairwise_distance(a, b).mean()

# rows_normalized
y = x.flip(0)
return F.mse_loss(F.normalize(x[m], dim=-1), F.normalize(y[m], dim=-1))

# loss_of_each
y = x.flip(0)
loss = F.smooth_l1_loss(x[m], y[m], reduction="none")
return loss.mean() + loss.sum(0)

# divergence
y = table.flip(0)
return F.kl_div(F.log_softmax(table[held], dim=-1), F.softmax(y[held], -1), reduction="batchmean")

# parts_of_a_name
parts = torch.split(x, n.tolist())
return torch.stack([part.sum(dim=0) for part in parts])

# parts_of_a_loop
out = []
for part in x.split(n.tolist()):
    out.append(part.mean(0))
return torch.stack(out)

# parts_along_with_others
total = 0
for i, part in enumerate(x.split(n.tolist(), dim=0)):
    total = total + i * part.sum(axis=0)
return total
""")

REFUSED = bodies("""
# parts_that_change
out = []
y = x.clone()
for part in y.split(n.tolist()):
    out.append(part.sum(0))
    y.add_(1)
return torch.stack(out)

# parts_in_another_context
parts = x.split(n.tolist())
with torch.no_grad():
    out = [part.sum(0) for part in parts]
return torch.stack(out)

# parts_in_two_ways
return [part.sum(0) / part.mean(0) for part in x.split(n.tolist())]

# places_that_are_read
at = m.nonzero().squeeze(1)
return x[: at.numel()], at

# bins_of_two_masks
return torch.bincount(n[n > 1] + n[n < 3], minlength=9)

# bins_of_whole_weights
return torch.bincount(n, weights=n, minlength=9)

# repeats_met_by_what_may_be_repeated
return x + table[0, :3].repeat_interleave(n, dim=0)

# repeats_that_index
part = torch.repeat_interleave(torch.arange(3), n)
return x * table[1][part]

# repeats_in_a_column
part = torch.repeat_interleave(n)
return x * part.unsqueeze(-1)

# repeats_that_scatter
part = torch.repeat_interleave(torch.arange(3), n)
return torch.zeros(3).scatter_add(0, part, x[:, 0])

# repeats_met_by_nothing
return torch.repeat_interleave(x, torch.arange(6), dim=0)

# repeats_met_by_what_changes
part = torch.repeat_interleave(torch.arange(3), n)
x = torch.cat([x[1:], x[:1]])
return x * table[1][part]

# rows_that_meet_others
return F.cosine_similarity(x[m], x[~m], dim=-1).mean()

# rows_that_meet_as_many
rows = torch.arange(6)[m]
return F.cosine_similarity(x[m], x[rows], dim=-1).mean(), rows

# rows_compared_along_the_first
return F.cosine_similarity(x[m], x.flip(0)[m], dim=0).mean()

# selected_in_another_dimension
at = torch.where(x[0] > 0)[0]
return x.index_select(1, at).sum()
""")


@pytest.mark.torch
@pytest.mark.parametrize("body", FORMS.values(), ids=FORMS)
def test_form(body: str) -> None:
    judge("import numpy as np\n" + function(body, _PARAMETERS, _INPUTS), inputs)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refusal(body: str) -> None:
    text = function(body, _PARAMETERS, _INPUTS)
    assert mend_text(text).source.text == text


@pytest.mark.torch
@pytest.mark.parametrize("size", [(0, 0), (1, 1), (2, 2), (1, 1, 4), (2, 2, 0)], ids=str)
def test_a_diagonal_of_any_size(size: tuple[int, ...]) -> None:
    body = "    same = torch.eye(x.shape[0], dtype=torch.bool)\n    return x[~same].cos(), x[same].sort(0).values"
    text = function(body, "x", f"[(torch.randn({(3, 3, *size[2:])}),)]")
    mended = mend_text(text)
    assert {applied.fix.rewrite for applied in mended.applied} == {"known_size"}
    x = torch.randn(size)
    for one, other in zip(nested(text)(x), nested(mended.source.text)(x), strict=True):
        assert torch.equal(one, other)


def test_a_dimension_that_is_added_behind_a_slice_from_the_end() -> None:
    body = "    k = n.argmax().item()\n    return (table[..., :k, None] * 2).sum()"
    assert not mend_text(function(body, _PARAMETERS, _INPUTS)).changed
