"""What a branch binds, returns and stores is selected: both sides judged, gradients included."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from asked import offered
from bodies import bodies, function
from judge import judge, mend_text, torch

_ONE, _TWO = "[(torch.ones(4),)]", "[(torch.ones(4, 4),)]"


def signs() -> list[tuple[Any, ...]]:
    """Arguments of which all are positive, and of which all are negative; gradients are asked for."""
    one = torch.rand(4, 4) + 0.1
    return [(one.clone().requires_grad_(),), ((-one).requires_grad_(),)]


def zeros() -> list[tuple[Any, ...]]:
    return [(torch.rand(4).requires_grad_(),), (torch.zeros(4).requires_grad_(),)]


FINITE = bodies("""
# quotient
n = x.norm()
if n > 0:
    y = x / n
else:
    y = x
return y

# count
n = (x != 0).sum()
if n:
    x = x / n
return x * 2

# returned
s = x.sum()
if s == 0:
    return x * 0.5
return (x * 2) / s

# expression
s = x.sum()
return x / s if s != 0 else x * 2

# square_root
if (x > 0).all():
    x = torch.sqrt(x) + x.log()
return x * 2

# power
if (x > 0).all():
    x = x**-0.5
return x * 2

# nested
s = x.sum()
if s != 0:
    if x.max() > 0.5:
        x = x / s
    else:
        x = (x + 1) / s
return x * 2
""")

VALUES = bodies("""
# number
k = 1
if x.sum() > 0:
    k = 2
return x * k

# number_in_double_precision
k = 2.0 if x.sum() > 0 else 0.1
return x.double() * k

# flag
flag = False
if x.sum() > 0:
    flag = True
if flag:
    x = x * 2
return x + 1

# counted
count = 0
if x.sum() > 0:
    count += 1
return x * count

# inline
return x * (2 if (x > 0).all() else 3)

# none
mask = x > 0
if mask.all():
    mask = None
return x * 3 if mask is None else x * mask

# none_before
y = None
if x.sum() > 0:
    y = x + 1
if y is None:
    y = x * 3
return y * 2

# chain_of_returns
if x.mean() > 0.5:
    return x + 1
elif x.mean() > 0:
    return x * 2
return x - 1

# early_inside
if x.mean() > 0:
    if x.max() > 0.7:
        return x + 1
    x = x * 2
y = x * 3
return y - 1

# temporary_of_a_nested_branch
if x.mean() > 0:
    if x.max() > 0.7:
        h = x + 1
    else:
        h = x + 2
    y = h * 2
else:
    y = x * 1
return y

# known_or
if x.ndim == 3 or x.sum() > 0:
    x = x + 1
return x * 2

# known_behind
if x.sum() > 0 and x.shape[0] == 4:
    x = x + 1
return x * 2
""")

STORES = bodies("""
# read_after_a_store
y = x * 2
if x.sum() > 0:
    y[0] = 0
    z = y.sum()
else:
    z = x.sum()
return z

# element
y = x * 2
if x.sum() > 0:
    y[0] = 0
return y

# elements_of_both
y = x * 2
if x.sum() > 0:
    y[:, 1:] = 2
else:
    y[0] = y[1]
return y

# under_a_mask
y = x * 2
m = x.abs() > 0.5
if x.sum() > 0:
    y[m] = 0.0
return y

# key
d = {"a": x * 1}
if x.sum() > 0:
    d["a"] = x * 2
return d["a"] + 1

# keys_of_both
d = {}
if x.sum() > 0:
    d["a"] = x * 2
else:
    d["a"] = x * 3
return d["a"] + 1
""")

REFUSED = bodies("""
# number_returned
return x, (2 if x.sum() > 0 else 3)

# number_as_an_index
k = 0
if x.sum() > 0:
    k = 1
return x[k:]

# number_of_another_type
k = True
if x.sum() > 0:
    k = 2.0
return x * k

# attribute_that_may_not_be_there
if x.sum() > 0:
    logger.last = x
return x + 1

# size_that_differs
if x.sum() > 0:
    x = x[1:]
return x + 1

# a_side_returns_none
if x.sum() > 0:
    return None
return x

# the_test_keeps_a_side_of_several_statements_from_dividing_by_zero
n = (x > 0).sum()
if n == 0:
    return {"loss": x.sum() * 0}
positive = x.relu().sum()
return {"loss": positive / n}
""")


@pytest.mark.torch
@pytest.mark.parametrize("body", FINITE.values(), ids=FINITE)
def test_a_side_not_taken_leaks_no_nan(body: str) -> None:
    judge(function(body, inputs=_ONE), zeros)


@pytest.mark.torch
@pytest.mark.parametrize("body", VALUES.values(), ids=VALUES)
def test_value(body: str) -> None:
    judge(function(body, inputs=_TWO), signs)


@pytest.mark.torch
@pytest.mark.parametrize("body", STORES.values(), ids=STORES)
def test_store(body: str) -> None:
    judge(function(body, inputs=_TWO), signs)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refusal(body: str) -> None:
    text = function(body, inputs=_TWO)
    mended = mend_text(text)
    assert mended.source.text == text, mended.source.text
    assert mended.left


@pytest.mark.torch
def test_without_gradients_nothing_is_kept_from_a_singular_point() -> None:
    body = "    with torch.no_grad():\n        n = x.norm()\n        y = x / n if n > 0 else x * 2\n    return y"
    assert judge(function(body), lambda: [(t.detach(),) for (t,) in zeros()]).count("graphmend.runtime.select") == 1


@pytest.mark.torch
def test_a_long_chain_is_written_step_by_step() -> None:
    tests = "".join(
        f"    {'el' if i else ''}if x.sum() > {9 - i}:\n        y = x * {i} + torch.full_like(x, {i})\n"
        for i in range(9)
    )
    after = judge(function(f"{tests}    else:\n        y = x\n    return y * 1"), signs)
    assert max(map(len, after.splitlines())) < 150


@pytest.mark.torch
def test_dictionaries_of_tensors_are_selected_key_by_key() -> None:
    body = (
        "    s = x.sum()\n    if s > 0:\n        found = {'out': x * 2, 'loss': s * 1, 'of': 3}\n    else:\n"
        "        found = {'out': x + 1, 'loss': -s, 'of': 3}\n    return found['out'] * found['of'], found['loss']\n"
    )
    assert "graphmend.runtime.select" in judge(function(body), lambda: [(t.detach(),) for (t,) in signs()])


@pytest.mark.parametrize(
    ("rewrite", "body"),
    [
        ("select", "if x.max() > 1.5:\n    x = x.reshape(x.shape)\nreturn x"),
        ("stop_mask", "for i in range(2):\n    if x.sum() > 0:\n        break\n    x = x * 2\nreturn x"),
        ("while_loop", "while x.sum() < 3:\n    x = x * 2\nreturn x"),
    ],
)
def test_a_copy_of_what_is_kept_has_no_history_under_no_grad(rewrite: str, body: str) -> None:
    head = "import torch\nfrom torch import Tensor\n\n@torch.compile\ndef case(x: Tensor):\n"
    inner = textwrap.indent(body, " " * 8)
    for around, expected in (("with torch.no_grad():", True), ("if True:", False)):
        [fix] = [f for f in offered(f"{head}    {around}\n{inner}\n") if f.rewrite == rewrite]
        assert any("loses its gradient history" in d.says for d in fix.differences) is expected
