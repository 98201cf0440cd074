"""Mended functions, judged by TorchDynamo and by their outputs: each form of the catalogue, both sides of branches."""

from __future__ import annotations

import re
import textwrap
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from judge import judge, mend_text  # noqa: E402

HEAD = """\
import copy
import functools
import gc
import importlib
import itertools
import logging
import math
import os
import random
import time
import warnings

import torch
import torch.nn.functional as F

logger = logging.getLogger("judged")
logger.propagate = False
logger.setLevel("INFO")


@torch.compile
"""


def cases(text: str) -> dict[str, str]:
    """Bodies of functions by their names, which stand above them as comments."""
    parts = re.split(r"^# (\w+)\n", text, flags=re.MULTILINE)[1:]
    return {
        name: textwrap.indent(body.strip("\n"), "    ")[4:] for name, body in zip(parts[::2], parts[1::2], strict=True)
    }


def module(body: str) -> str:
    return HEAD + textwrap.dedent(body).lstrip("\n")


def both() -> list[tuple[Any, ...]]:
    """Arguments that take both sides of a test of the sign; gradients are asked for."""
    one = torch.rand(4, 4) + 0.1
    return [(one.clone().requires_grad_(),), ((-one).requires_grad_(),)]


def plain() -> list[tuple[Any, ...]]:
    return [(t.detach(),) for (t,) in both()]


def integers() -> list[tuple[Any, ...]]:
    return [(torch.tensor([1, 7, 7]), torch.rand(2, 3)), (torch.tensor([7, 1, 7]), torch.rand(2, 3))]


def indexed() -> list[tuple[Any, ...]]:
    return [(torch.rand(5, 3), torch.tensor(1)), (torch.rand(5, 3), torch.tensor(0))]


BRANCHES = cases("""
# elif
if x.sum() > 10:
    x = x + 1
elif x.sum() > 0:
    x = x * 2
else:
    x = x - 1
return x * 2

# several
if x.sum() > 0:
    y, z = x + 1, x * 2
else:
    y = x - 1
    z = x * 3
return y * z

# swap
y = x * 2
if x.sum() > 0:
    x, y = y, x
return x - y * 3

# nested
y = x
if x.sum() > 0:
    y = x * 2
    if x.max() > 0.5:
        y = y + 1
return y * 1

# nested_return
if x.sum() > 0:
    if x.max() > 0.5:
        return x + 1
    else:
        return x + 2
return x * 3

# temporary
if x.sum() > 0:
    h = x * 2
    x = h + h
return x * 2

# not
if not x.sum() > 0:
    x = x * 2
return x + 1

# or
if x.sum() > 100 or x.max() < 0:
    x = x * 2
return x + 1

# ternary
y = x * 2 if x.mean() > 0 else x - 1
return y

# nested_ternary
return x * 2 if x.mean() > 1 else (x - 1 if x.mean() > 0 else x * 5)

# early
y = x * 2
if x.sum() > 0:
    return y + 1
z = y * 3
return z - 1

# tuple
if x.sum() > 0:
    return x + 1, x * 2
return x - 1, x * 3

# static
if x.dim() == 2 and (x > 0).all():
    x = x * 2
return x + 1

# bool_call
if bool(x.sum() > 0):
    x = x * 2
return x + 1

# truth
if x.sum():
    x = x * 2
return x + 1

# any_rows
if (x > 0).any() and not (x > 100).any():
    x = x * 2
return x + 1

# item
s = x.sum().item()
if s > 0:
    x = x * 2
return x + 1

# item_chain
if 0 < x.sum().item() < 100:
    x = x * 2
return x + 1

# in_loop
for i in range(3):
    if x.sum() > i:
        x = x + 1
return x * 2

# sqrt
if (x > 0).all():
    y = x.abs().sqrt()
else:
    y = x * 2
return y

# call
h = F.relu(x)
if h.sum() > 0:
    h = F.gelu(h)
return h * 2

# equal
if torch.equal(x, x.abs()):
    x = x * 2
return x + 1
""")

LOOPS = cases("""
# break
for i in range(4):
    x = x * 2
    if x.sum() > 30:
        break
return x + 1

# continue
y = x * 0
for i in range(3):
    if x.sum() > i:
        continue
    y = y + x
return y

# while
y = x.abs()
while y.sum() < 100:
    y = y * 2
return y

# break_first
for i in range(4):
    if x.sum() > 30:
        break
    x = x * 2
return x + 1
""")

GUARDS = cases("""
# raise
if (x < 0).any():
    raise ValueError("negative")
return x.sqrt()

# raise_format
if (x < 0).any():
    raise ValueError(f"negative {x.shape}: {x}")
return x.sqrt()

# raise_not
if not (x >= 0).all():
    raise ValueError("negative")
return x.sqrt()

# raise_item
if x.min().item() < 0:
    raise ValueError("negative")
return x.sqrt()

# raise_else
if x.min() < 0:
    raise ValueError("negative")
else:
    x = x + 1
return x.sqrt()

# assert_not
assert not (x < 0).any(), "negative"
return x.sqrt()

# assert_and
assert (x > 0).all() and (x < 5).all()
return x.sqrt()

# assert_static
assert x.dim() == 2 and (x > 0).all(), "bad"
return x.sqrt()

# assert_item
assert x.min().item() > 0
return x.sqrt()

# assert_format
assert (x > 0).all() and x.sum() > 0, f"bad {x}"
return x.sqrt()
""")

OUTPUT = cases("""
# print
y = x + 1
print("y", y.sum(), sep="=")
return y * 2

# print_item
y = x + 1
print("y %d" % y.sum().item(), int(y.sum()), end="!")
return y * 2

# print_format
y = x + 1
print(f"{y.sum().item():.2f} {y.shape}")
return y * 2

# print_loop
for i in range(2):
    x = x + 1
    print(i, x.mean())
return x

# print_if
y = x + 1
if y.sum() > 0:
    print("positive", y.sum())
return y

# print_else
y = x + 1
if y.sum() > 0:
    print("positive")
else:
    print("negative", y.sum())
return y

# print_and_more
y = x + 1
if y.sum() > 0:
    print("positive", sep="-")
    y = y * 2
return y

# print_unpacked
print(*[1, 2], x.shape)
return x + 1

# logger_found
logging.getLogger("judged").warning("hi")
return x + 1

# logger
y = x + 1
logger.info("y %s %s", y.shape, y.sum())
return y

# logger_item
y = x + 1
logger.warning(f"sum {y.sum().item():.3f}")
return y

# logger_if
if x.sum() > 0:
    logger.warning("positive")
return x * 2

# in_try
try:
    y = x + 1
    print("a")
finally:
    x = x * 2
return x + y
""")

SCALARS = cases("""
# multiply
return x * x.sum().item()

# float
s = float(x.mean())
return x / (s + 10)

# add
return x + x.max().item() * 2

# accumulate
total = 0.0
for i in range(3):
    total += x[i].sum().item()
return x * total

# clamp
y = x.clone()
y[y < 0] = 0
return y * y.sum().item()

# math
return x * math.exp(x.mean())

# unpack
a, b, c, d = x[0].tolist()
return x * a + d

# minimum
m = max(0.0, x.max().item())
return x + m
""")

SHAPES = cases("""
# sum
return x[x > 0].sum()

# mean
return x[x.abs() > 0].mean()

# count
return x * (x > 0).nonzero().shape[0]

# count_length
return x + len(x[x > 0])

# guarded
y = x * 1
m = y > 0.5
if m.any():
    y[m] = 0
return y

# double
y = x * 1
m = y > 0
y[m] = y[m] * 2
return y

# increment
y = x * 1
y[y > 0] += 1
return y

# select
return x.masked_select(x > 0).sum()
""")

PYTHON = cases("""
# deepcopy
y = copy.deepcopy(x)
return y + 1

# module
return x * importlib.import_module("math").pi

# gc
y = x + 1
gc.collect()
return y

# environ
os.environ["JUDGED"] = "1"
return x + 1

# class
class Two:
    value = 2
return x * Two.value

# power
return pow(x, 2)

# groupby
for size, group in itertools.groupby([1, 1, 2], lambda size: size * 2):
    x = x * size + len(list(group))
return x

# cudnn
with torch.backends.cudnn.flags(enabled=False):
    y = x * 2
return y + 1

# cpu_count
return x * min(os.cpu_count(), 1)
""")

INDICES = cases("""
# item
return x[n.item()] * 2

# argmax
return x[x[:, 0].argmax()] * 2

# store
y = x.clone()
y[n.item()] = 0
return y

# from_the_end
return x[-n.item()] * 2

# column
return x[:, n.item()] + 1

# store_row
y = x.clone()
y[n.item()] = y[0] * 2
return y
""")


@pytest.mark.parametrize("body", BRANCHES.values(), ids=BRANCHES)
def test_branch(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", LOOPS.values(), ids=LOOPS)
def test_loop(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, plain if "while" in body else both)


@pytest.mark.parametrize("body", GUARDS.values(), ids=GUARDS)
def test_guard(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", OUTPUT.values(), ids=OUTPUT)
def test_output(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, plain)


@pytest.mark.parametrize("body", OUTPUT.values(), ids=OUTPUT)
def test_output_is_kept_with_gradients(body: str) -> None:
    if "x.sum()" not in body and "y.sum()" not in body and "mean" not in body:
        judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", SCALARS.values(), ids=SCALARS)
def test_scalar(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_shape(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, both)


@pytest.mark.parametrize("body", PYTHON.values(), ids=PYTHON)
def test_python(body: str) -> None:
    judge(module(f"def case(x):\n    {body}\n") + INPUTS, plain)


@pytest.mark.parametrize("body", INDICES.values(), ids=INDICES)
def test_index(body: str) -> None:
    inputs = "\n\ndef example_inputs():\n    return [(torch.rand(5, 3), torch.tensor(1))]\n"
    judge(module(f"def case(x, n):\n    {body}\n") + inputs, indexed)


INPUTS = "\n\ndef example_inputs():\n    return [(torch.rand(4, 4),)]\n"


REFUSED = cases("""
# drawn_once
import numpy as np
return x * np.random.rand(1).item()

# prints
if x.sum() > 0:
    x = helper(x)
return x

# shapes
if x.sum() > 0:
    x = x[:1]
return x * 2

# dtypes
y = x
if x.sum() > 0:
    y = x > 0
return y

# random
if x.sum() > 0:
    x = x + torch.rand_like(x)
return x

# flag
flag = False
if x.sum() > 0:
    flag = True
return x, flag

# in_try
try:
    if x.sum() > 0:
        raise ValueError("a")
except ValueError:
    x = x + 1
return x

# range
y = x
for i in range(int(x.sum())):
    y = y[: i + 1]
return y

# returned
return x + 1, x.sum().item()

# list
out = []
if x.sum() > 0:
    out.append(x)
return out

# attribute
if x.sum() > 0:
    helper.seen = True
return x

# alias
y = x
if x.sum() > 0:
    y = x * 2
y.add_(1)
return y
""")


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_refusal(body: str) -> None:
    text = module(f"def case(x):\n    {body}\n") + INPUTS
    text = text.replace(
        "@torch.compile", "def helper(x):\n    global seen\n    seen = x\n    return x\n\n\n@torch.compile"
    )
    mended = mend_text(text)
    assert mended.source.text == text
    assert mended.left
    assert all(reason for _, reason in mended.left)


def test_a_gradient_flag_of_what_is_returned_is_set_in_plain_python_only() -> None:
    text = (
        module("def case(x):\n    y = x[:, None]\n    y.requires_grad = True\n    y = y * 2\n    return y\n") + INPUTS
    )
    judge(text, plain)
    assert "if not torch.compiler.is_compiling():\n        y.requires_grad = True" in mend_text(text).source.text
