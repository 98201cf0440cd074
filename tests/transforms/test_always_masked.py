"""Masks that are left out where they mask nothing are used always, where nothing tells the difference."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from bodies import bodies, function
from judge import judge, mend_text, torch

HELPERS = """
def bias_of(keep, dtype):
    if keep is None or keep.bool().all():
        return None
    bias = torch.zeros_like(keep, dtype=dtype)
    bias = bias.masked_fill(keep == 0, torch.finfo(dtype).min)
    return bias[:, None, None, :]


def blocked(keep):
    gone = ~keep[:, None, None, :]
    if gone.sum() == 0:
        return None
    bias = torch.zeros(gone.shape)
    bias.masked_fill_(gone, float("-inf"))
    return bias


def attend(x, mask=None):
    scores = x @ x.transpose(-1, -2)
    if mask is not None:
        mask = mask.unsqueeze(1)
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(-1) @ x


class Holder:
    keep = torch.ones(2, 4, dtype=torch.bool)


holder = Holder()
made = []


def turn(keep):
    holder.keep = keep & torch.eye(4, dtype=torch.bool)[:2]


def counted(keep):
    made.append(1)
    return (1.0 - keep[:, None].float()) * -1e9


def weigh(x, bias=None):
    if bias is None:
        p = (x @ x.transpose(-1, -2)).softmax(-1)
    else:
        p = (x @ x.transpose(-1, -2) + bias).softmax(-1)
    return p @ x


"""
MODEL = """
class Attention(torch.nn.Module):
    def forward(self, x, mask=None):
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def forward(self, x, mask=None):
        return x + self.attention(x, mask=mask)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer() for _ in range(2))

    def mask_of(self, keep):
        if keep is not None and torch.all(keep == 1):
            return None
        return keep[:, None, None, :].bool()

    def forward(self, x, keep):
        mask = self.mask_of(keep)
        for layer in self.layers:
            x = layer(x, mask)
        return x


model = Model()


"""
_CASES = bodies("""
# in_the_call
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if keep.all() else keep[:, None, None, :])

# both_sides
if torch.all(keep):
    keep = None
else:
    keep = keep[:, None, None]
return F.scaled_dot_product_attention(x, x, x, keep)

# one_side
mask = None
if not keep.all().item():
    mask = torch.where(keep, 0.0, -1e9)[:, None, None]
return F.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=False)

# named_test
gone = keep.logical_not()
some = bool(gone.any())
mask = ~gone[:, None, None] if some else None
return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

# of_a_helper
return F.scaled_dot_product_attention(x, x, x, attn_mask=bias_of(keep.long(), x.dtype))

# filled_in_place
return F.scaled_dot_product_attention(x, x, x, attn_mask=blocked(keep))

# asks_for_none
mask = keep[:, None, :]
if mask is not None and mask.all():
    mask = None
return attend(x, mask)

# on_both_sides_of_none
bias = None if (keep == 1).all() else (1 - keep[:, None, None].to(x.dtype)) * -1e4
return weigh(x, bias)

# filled_in_a_branch
bias = None
if not torch.all(keep):
    gone = ~keep
    bias = torch.zeros(keep.shape)
    bias[gone] = -1e4
    bias = bias[:, None, None]
return F.scaled_dot_product_attention(x, x, x, attn_mask=bias)

# through_modules
return model(x, keep.long())

# membership
mask = keep[:, None, None] if False in keep else None
return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)

# counted
mask = None if keep.sum() == keep.numel() else keep[:, None, None]
return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
""")
_KEPT = bodies("""
# another_mask
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if keep.roll(1).all() else keep[:, None, None])

# one_row
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if keep[0].all() else keep[:, None, None])

# the_other_way
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if keep.any() else keep[:, None, None])

# changed_behind_the_test
full = keep.all()
keep[0, 0] = False
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if full else keep[:, None, None])

# another_attribute_by_then
holder.keep = keep
full = holder.keep.all()
holder.keep = keep & torch.eye(4, dtype=torch.bool)[:2]
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if full else holder.keep[:, None, None])

# another_attribute_by_a_function
full = holder.keep.all()
turn(keep)
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if full else holder.keep[:, None, None])

# bools_that_let_nothing_through
gone = torch.zeros_like(keep)
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if keep.all() else gone[:, None, None])

# causal_by_place
mask = None if keep.all() else keep[:, None, None]
return F.scaled_dot_product_attention(x, x, x, mask, 0.0, True)

# read_in_a_comprehension
mask = None if keep.all() else keep[:, None, None]
return [F.scaled_dot_product_attention(x, x, x, attn_mask=mask), *(x if mask is None else y for y in (x, -x))]

# bound_again_in_a_loop
mask = None if keep.all() else keep[:, None]
for _ in range(2):
    if mask is not None:
        x = x.masked_fill(~mask, 0.0)
        mask = None
return x

# counted_where_it_is_made
mask = None if keep.all() else keep
if mask is not None:
    x = x + counted(mask)
return x

# zero_times_infinity
bias = None if keep.all() else (1 - keep[:, None, None].float()) * float("-inf")
return F.scaled_dot_product_attention(x, x, x, attn_mask=bias)

# numbers_that_are_added
bias = keep[:, None, None].float()
return F.scaled_dot_product_attention(x, x, x, attn_mask=None if bias.all() else bias)

# causal_without_one
mask = None if keep.all() else keep[:, None, None]
return F.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=mask is None)

# something_else_under_the_mask
mask = None if keep.all() else keep[:, None, None]
y = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
if mask is not None:
    y = y * 2
return y

# handed_out
mask = None if keep.all() else keep[:, None, None]
return F.scaled_dot_product_attention(x, x, x, attn_mask=mask), mask

# counts_as_well
mask = None
seen = 0
if not keep.all():
    mask = keep[:, None, None]
    seen = seen + 1
return F.scaled_dot_product_attention(x, x, x, attn_mask=mask) + seen

# stores_as_well
mask, table = None, {}
if not keep.all():
    mask = keep[:, None, None]
    table["mask"] = 1
return F.scaled_dot_product_attention(x, x, x, attn_mask=mask) + len(table)

# bound_in_a_loop
mask = keep[:, None, None]
for _ in range(2):
    if mask is not None and mask.all():
        mask = None
    x = F.scaled_dot_product_attention(x, x, x, attn_mask=mask)
return x
""")


def text(body: str) -> str:
    source = function(body, "x, keep", "[(torch.rand(2, 2, 4, 8), torch.ones(2, 4, dtype=torch.bool))]")
    helpers = HELPERS + MODEL if "model(" in body else HELPERS
    return source.replace("\n\n@torch.compile", helpers + "@torch.compile", 1)


def inputs() -> list[tuple[Any, ...]]:
    masks = torch.ones(2, 4, dtype=torch.bool), torch.tensor([[True] * 4, [True, True, False, True]])
    return [(torch.randn(2, 2, 4, 8, requires_grad=True), mask) for mask in masks]


@pytest.mark.torch
@pytest.mark.parametrize("body", _CASES.values(), ids=_CASES)
def test_a_mask_that_masks_nothing_is_used(body: str) -> None:
    mended = mend_text(text(body))
    assert {m.fix.rewrite for m in mended.applied} - {"logical"} == {"always_masked"}
    assert all(m.fix.differences for m in mended.applied if m.fix.rewrite == "always_masked")
    judge(text(body), inputs)


@pytest.mark.parametrize("body", _KEPT.values(), ids=_KEPT)
def test_a_mask_that_is_told_from_none_is_not(body: str) -> None:
    mended = mend_text(text(body))
    assert "always_masked" not in {m.fix.rewrite for m in mended.applied}
    ast.parse(mended.source.text)
