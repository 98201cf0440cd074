"""Guards, loops and texts in further forms, judged."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from bodies import bodies, function
from by_hand import facts_at, refused
from judge import judge, mend_text, torch

from graphmend.analysis.lattice.values import Tensor
from graphmend.transforms.rewrites.control_flow import stop_mask

_X = "[(torch.ones(4, 4),)]"


def signs() -> list[tuple[Any, ...]]:
    one = torch.rand(4, 4) + 0.1
    return [(one,), (-one,)]


GUARDS = bodies("""
# other_side_raises
if x.sum() > 0:
    y = x + 1
else:
    raise ValueError("negative")
return y

# message_in_a_name
if (x < 0).any():
    message = "negative"
    raise ValueError(message)
return x + 1

# check_of_torch
torch._assert((x > 0).all(), "negative")
return x + 1

# check_with_a_lambda
torch._check((x > 0).all().item(), lambda: f"{x.shape} is negative")
return x + 1

# known_behind
assert (x > 0).all() and x.ndim == 2
return x + 1
""")

LOOPS = bodies("""
# return_inside
for i in range(3):
    x = x * 2
    if x.sum() > 5:
        return x
return x - 1

# in_place
y = x * 1
for i in range(4):
    y += 1
    if y.mean() > 2:
        break
return y * 2

# once_and_until
while True:
    x = x.abs() * 2
    if x.sum() > 10:
        break
return x + 1
""")

OUTPUT = bodies("""
# chain
if x.sum() > 0:
    print("positive", x.shape)
elif x.sum() < -2:
    print("negative")
    print(x.mean().item())
else:
    print("small")
return x + 1

# logger_made_inside
logging.getLogger("judged").warning("seen %s", x.shape)
return x + 1

# array
print(x[0].numpy())
return x + 1
""")

TEXTS = bodies("""
# list
return x + 1, str([x, x])

# representation
return x + 1, repr(x)

# percent
return x + 1, "value %s of %s" % (x, x)
""")

REFUSED = bodies("""
# text_of_a_number
return x + 1, str(x.sum())

# heap
h = [3, 1, 2]
import heapq
heapq.heapify(h)
return x + h[0]

# two_ways_out
for i in range(3):
    x = x * 2
    if x.sum() > 5:
        return x
    if x.sum() < -5:
        break
return x
""")


@pytest.mark.torch
@pytest.mark.parametrize("body", [*GUARDS.values(), *LOOPS.values(), *OUTPUT.values(), *TEXTS.values()])
def test_form(body: str) -> None:
    judge(function(body, inputs=_X), signs)


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refusal(body: str) -> None:
    text = function(body, inputs=_X)
    assert mend_text(text).source.text == text


def test_a_return_is_not_called_a_break() -> None:
    """Outside a loop nothing is said of loops; in one, the statement that is nested has its name."""
    body = "    if x.sum() == 0:\n        return x\n    return x + 1\n"
    values = {"x": Tensor("x")}
    assert stop_mask.rewrite(*facts_at(f"def f(x):\n{body}", "x.sum() == 0", values)) is None
    deeper = textwrap.indent(body, "        ").replace("return x + 1", "x = x + 1")
    text = f"def f(x):\n    for i in range(3):\n        if i > 1:\n{deeper}"
    assert refused(stop_mask.rewrite, text, "x.sum() == 0", values) == "the `return` is nested"


WORDS = {
    'assert (x > 0).all(), f"expected positive x, got {x.min():.2f}"': '"expected positive x, got <x.min()>"',
    'assert (x > 0).all(), "bad rows: " + str(x.sum()) + " in all"': '"bad rows: <x.sum()> in all"',
    'assert (x > 0).all(), "bad %s" % x.sum()': '"bad <x.sum()>"',
    'assert (x > 0).all(), "bad {}".format(x.sum())': '"bad <x.sum()>"',
    'if (x < 0).any():\n    raise ValueError(f"{x.shape[0]} rows")': '"<x.shape[0]> rows"',
    "assert (x > 0).all(), x.sum()": '"assertion failed"',
    'assert (x > 0).all(), "%d%% of %s" % (x.shape[0], "x")': "\"<x.shape[0]>% of <'x'>\"",
    'assert (x > 0).all(), "{{}} {b} {}".format(x.sum(), b=x.dtype)': '"{} <x.dtype> <x.sum()>"',
    # a counter of rounds is known while compiled, and the text stays one
    'for i, row in enumerate(x):\n    assert (row > 0).all(), f"row {i:>2} of {{x}}: {row}"': (
        'f"row {i:>2} of {{x}}: <row>"'
    ),
    'for i in range(2):\n    assert (x > i).all(), "round {}".format(i)': 'f"round {i}"',
    'for i in range(2):\n    i = i + x.shape[0]\n    assert (x < i).all(), f"round {i}"': '"round <i>"',
    'for i, row in enumerate(x, 1):\n    assert (row > 0).all(), f"row {i}"': '"row <i>"',
}


def asserting(statement: str) -> str:
    return textwrap.indent(f"{statement}\nreturn x + 1\n", "    ")


@pytest.mark.parametrize("statement", WORDS)
def test_an_assertion_keeps_its_words(statement: str) -> None:
    mended = mend_text(function(asserting(statement), inputs=_X)).source.text
    assert f", {WORDS[statement]})" in mended


@pytest.mark.torch
def test_assertions_with_values_in_their_words() -> None:
    for statement in WORDS:
        judge(function(asserting(statement), inputs=_X), signs)


DEVIATION = """\
    picked = x > 0
    return ((x[picked] - 1) ** 2).var() + 1
"""
SOMETIMES = """\
    picked = x > 0
    return x.sum() if x.dim() > 1 else ((x[picked] - 1) ** 2).var()
"""


@pytest.mark.torch
def test_what_a_reduction_needs_again_and_again_has_a_name() -> None:
    """Not where it is not always evaluated."""
    mended = mend_text(function(DEVIATION, inputs=_X)).source.text
    assert mended.count("** 2") == mended.count("    values = ") == mended.count("    count = ") == 1
    assert mend_text(function(SOMETIMES, inputs=_X)).source.text.count("    values = ") == 0
    judge(function(DEVIATION, inputs=_X), signs)
