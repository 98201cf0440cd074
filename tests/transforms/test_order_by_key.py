"""Orders by keys that are read out of tensors: a stable argsort where all that is done with them takes a tensor."""

from __future__ import annotations

from typing import Any

import pytest
from bodies import bodies, function
from judge import judge, mend_text, torch

HELPERS = """
def rising(t):
    area = t[:, 2] * t[:, 1]
    return sorted(range(area.size(0)), key=lambda i: area[i])


"""
_CASES = bodies("""
# by_an_element
order = sorted(range(x.shape[0]), key=lambda i: x[i, 0].item())
return x[order], y[order, 1:]

# falling
s = x.sum(-1)
ranking = sorted(range(len(s)), key=lambda k: float(s[k]), reverse=True)
return x[ranking[:2]] + 1, s[ranking], len(ranking)

# by_the_negative
s = x[:, 1]
order = sorted(range(x.size(0)), key=lambda i: -s[i].item())
return y[order]

# of_a_helper
at = rising(x)
return torch.index_select(y, 0, torch.tensor(at, dtype=torch.long))

# sorted_in_place
order = list(range(x.size(0)))
order.sort(key=lambda i: x[i, 1].item())
return y[order] * 2

# by_two_keys
order = sorted(range(len(x)), key=lambda i: (x[i, 1].item(), -x[i, 0].item()))
return y[order]

# of_a_list
s = x[:, 0].tolist()
order = sorted(range(len(s)), key=s.__getitem__)
return y[order]

# one_by_one
order = sorted(range(x.shape[0]), key=lambda i: x[i][2].item())
return torch.stack([y[i] * 2 for i in reversed(order)])

# fewer_than_none
order = sorted(range(len(x) - 5), key=lambda i: x[i, 0].item())
return y[order]

# changed_as_a_tensor
order = sorted(range(len(x)), key=lambda i: x[i, 0].item())
turned = torch.tensor(order, dtype=torch.long)
turned += 1
return y[order], turned

# computed
order = sorted(range(len(x)), key=lambda i: x[i, 1].item() - 2 * x[i, 0].item())
return y[order[::-1]]
""")
_KEPT = bodies("""
# a_list_is_wanted
order = sorted(range(x.shape[0]), key=lambda i: x[i, 0].item())
return y[order + [0]]

# names_by_place
order = sorted(range(3), key=lambda i: x[i, 0].item())
return y, [("a", "b", "c")[i] for i in order]

# another_list_by_then
s = x[:, 0].tolist()
x = x.roll(1, 0)
order = sorted(range(len(s)), key=lambda i: s[i])
return x[order]

# sized_by_a_list_that_goes
s, t = x[:, 0], x[:, 1]
a = s.tolist()
b = t.tolist()
order = sorted(range(len(a)), key=lambda i: (a[i], b[i]))
return y[order]

# grows
order = sorted(range(x.shape[0]), key=lambda i: x[i, 0].item())
order.append(0)
return y[order]
""")


def text(body: str) -> str:
    source = function(body, "x, y", "[(torch.rand(3, 3), torch.rand(3, 3))]")
    return source.replace("\n\n@torch.compile", HELPERS + "@torch.compile", 1)


def inputs() -> list[tuple[Any, ...]]:
    ties = torch.tensor([[3.0, 0, 4], [1, 0, 2], [1, -1, 2.5]])
    return [(t, torch.arange(9.0).reshape(3, 3).requires_grad_()) for t in (torch.rand(3, 3), ties, -ties)]


@pytest.mark.torch
@pytest.mark.parametrize("body", _CASES.values(), ids=_CASES)
def test_places_are_put_in_order_at_once(body: str) -> None:
    after = judge(text(body), inputs)
    assert "argsort" in after


@pytest.mark.parametrize("body", _KEPT.values(), ids=_KEPT)
def test_a_list_that_is_needed_stays(body: str) -> None:
    assert "argsort" not in mend_text(text(body)).source.text
