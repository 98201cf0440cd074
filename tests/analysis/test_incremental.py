"""A document's analysis after edits is the analysis of its text, at every state that parses."""

from __future__ import annotations

import random
import re

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.incremental import Document
from graphmend.analysis.source import Source

MODEL = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


def clamp(x, limit: float = 1e4):
    if torch.isinf(x).any():
        x = x.clamp(-limit, limit)
    return x


def size(x):
    return x.shape[0]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("steps", torch.zeros(()))

    @torch.no_grad()
    def count(self, x):
        return (x > 0).sum()

    def forward(self, x: torch.Tensor):
        # Größe
        y = clamp(self.linear(x))
        if self.count(y) > 3:
            y = y * 2
        return y


class Net(nn.Module):
    def __init__(self, verbose: bool = False):
        super().__init__()
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.verbose = verbose

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None):
        for block in self.blocks:
            x = block(x)
        if mask is not None and 0.0 in mask:
            x = x * mask
        if self.verbose:
            logger.info("size %s", size(x))
        return x[x.argmax()]


@torch.compile
def step(net: Net, x: torch.Tensor):
    loss = net(x).sum().item()
    print("loss", loss)
    return loss
"""
STATEMENTS = [
    "x = x + 1",
    "print(x)",
    "if x.sum() > 0:\n            x = -x",
    "x.nonzero()",
    "self.flag = True",
    "return x",
]
PIECES = [*(s + "\n        " for s in STATEMENTS), "# é ", "\n", "é = 2", "(", ")", '"', "    ", "torch.", ".item()"]


def facts(findings: tuple[Finding, ...]) -> list[tuple[object, ...]]:
    return [
        (f.code, f.span, f.function, f.region, f.certainty, f.effect, f.key, f.related, f.message, len(f.evidence) > 0)
        for f in findings
    ]


def from_scratch(text: str) -> list[tuple[object, ...]] | None:
    """The findings of a whole text; None where it does not parse."""
    source = Source(text, "net.py")
    return facts(check(source).findings) if source.tree is not None else None


@pytest.mark.parametrize("seed", range(4))
def test_each_state_that_parses_says_what_a_fresh_check_says(seed: int) -> None:
    rng = random.Random(seed)
    document = Document("net.py")
    text = MODEL
    assert facts(document.update(text).findings) == from_scratch(text)
    place, parsed, good = rng.randrange(len(text)), 0, text
    for _ in range(250):
        if rng.random() < 0.3:  # most edits begin a statement somewhere
            starts = [m.start(1) for m in re.finditer(r"^        (?=\S)()", text, re.MULTILINE)]
            place = rng.choice(starts) if starts and rng.random() < 0.8 else rng.randrange(len(text) + 1)
        if rng.random() < 0.6:
            piece = rng.choice(PIECES) if rng.random() < 0.6 else rng.choice("abx =\n().[]:'#")
            edited, after = text[:place] + piece + text[place:], place + len(piece)
        else:
            edited, after = text[:place] + text[place + rng.randrange(1, 9) :], place
        update, expected = document.update(edited), from_scratch(edited)
        if expected is not None:
            assert not update.broken
            assert facts(update.findings) == expected
            parsed += 1
            good = edited
        elif text != good or rng.random() < 0.9:
            text = good  # taken back soon, as most slips are
            document.update(text)
            continue
        text, place = edited, min(after, len(edited))
    assert parsed > 10


def test_a_function_that_does_not_parse_leaves_the_others_alone() -> None:
    document = Document("net.py")
    before = document.update(MODEL).findings
    broken = document.update(MODEL.replace("x = x * mask", "x = x * ("))
    assert len(broken.broken) == 1
    first, last = broken.broken[0]
    assert MODEL.splitlines()[first - 1].lstrip().startswith("def forward")
    assert [f for f in before if not first <= f.span.line <= last] == list(broken.findings)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("    return x.shape[0]\n", "    return x.shape[0]\n\n\n@torch.compile", id="a-decorator"),
        pytest.param(
            "        return (x > 0).sum()\n", "        return (x > 0).sum()\n\nclass Other(nn.Module):", id="a-class"
        ),
        pytest.param("    return x.shape[0]\n", '    return x.shape[0]\n    """\n', id="a-quote"),
        pytest.param("    def count(self, x):\n        return (x > 0).sum()\n", "", id="a-decorator-alone"),
    ],
)
def test_what_does_not_parse_by_itself_may_do_so_with_what_is_around(before: str, after: str) -> None:
    text = MODEL.replace("        # Größe\n", '        # """ Größe\n')
    document = Document("net.py")
    document.update(text)
    edited = text.replace(before, after)
    expected = from_scratch(edited)
    update = document.update(edited)
    assert bool(update.broken) == (expected is None)
    if expected is not None:
        assert facts(update.findings) == expected


def test_lines_above_move_what_stands_below() -> None:
    document = Document("net.py")
    before = document.update(MODEL).findings
    after = document.update(MODEL.replace("    return x.shape[0]", "    n = 0\n    return x.shape[0]")).findings
    assert [f.span.line + (f.span.line > 17) for f in before] == [f.span.line for f in after]


def test_lines_above_move_what_stands_in_no_function_of_the_top_level() -> None:
    text = """\
import torch
from torch import nn

def first(x):
    return x.shape[0]

read = lambda x: x.item()

class Outer:
    class Net(nn.Module):
        def forward(self, x: torch.Tensor):
            return first(x) + x.tolist()

def second(x):
    return x

@torch.compile
def f(x: torch.Tensor):
    return read(x) + Outer.Net()(x)
"""
    document = Document("net.py")
    document.update(text)
    for function in ("first", "second"):
        text = text.replace(f"def {function}(x):\n", f"def {function}(x):\n    n = 3\n")
        assert facts(document.update(text).findings) == from_scratch(text)
    assert len(from_scratch(text) or ()) == 2


def test_a_changed_result_is_told_to_callers() -> None:
    text = """\
import torch

def n(x):
    return x.shape[0]

@torch.compile
def f(x: torch.Tensor):
    return x if n(x) > 3 else x + 1
"""
    document = Document("net.py")
    assert not document.update(text).findings
    changed = text.replace("x.shape[0]", "x.sum()")
    assert [f.code for f in document.update(changed).findings] == ["GM101"]
    assert not document.update(text).findings


def test_a_constructor_is_read_again() -> None:
    text = """\
import torch
from torch import nn

class N(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 3

    def forward(self, x: torch.Tensor):
        return x if self.k > 2 else -x
"""
    document = Document("net.py")
    assert not document.update(text).findings
    changed = text.replace("self.k = 3", "self.k = torch.ones(())")
    assert [f.code for f in document.update(changed).findings] == ["GM101"]


HEAD = "import torch\nfrom torch import nn\n\n"
CHANGES = {
    "how a parameter is used": (
        "class N(nn.Module):\n    def forward(self, x):\n        return 3\n",
        "return 3",
        "return x.item()",
    ),
    "a stub gets a body": (
        "def chk(x):\n    pass\n\n@torch.compile\ndef f(x: torch.Tensor):\n    chk(x)\n    return x\n",
        "    pass",
        "    print(x)",
    ),
    "a decorator's wrapper": (
        "def deco(f):\n    def w(*a):\n        y = 1\n        return f(*a)\n    return w\n\n"
        "@torch.compile\n@deco\ndef f(x: torch.Tensor):\n    return x\n",
        "y = 1",
        "print(a)",
    ),
    "behind a constructor": (
        "def inner():\n    return 3\n\ndef make():\n    return inner()\n\nclass N(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.k = make()\n\n"
        "    def forward(self, x: torch.Tensor):\n        return x if self.k > 2 else -x\n",
        "return 3",
        "return torch.ones(())",
    ),
    "a tuple of targets": (
        "class N(nn.Module):\n    def reset(self):\n        self.a, b = 3, 2\n\n"
        "    def forward(self, x: torch.Tensor):\n        return x if self.a > 2 else -x\n",
        "= 3, 2",
        "= torch.ones(()), 2",
    ),
    "the examples": (
        "@torch.compile\ndef f(x):\n    return 1 if x > 2 else 2\n\ndef example_inputs():\n    return [(3,)]\n",
        "[(3,)]",
        "[(torch.ones(3),)]",
    ),
    "a method leaves its class": (
        "class N(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return self.g(x)\n\n"
        "    def g(self, x):\n        print(x)\n        return x\n",
        "    def g(self, x):\n        print(x)\n        return x\n",
        "def g(self, x):\n    print(x)\n    return x\n",
    ),
    "a line that goes on": (
        "@torch.compile\ndef f(x: torch.Tensor):\n    return x.item()\n\ndef g(x):\n    return x\n",
        "return x.item()",
        "return x.item() \\",
    ),
}


@pytest.mark.parametrize("backwards", [False, True], ids=["forth", "back"])
@pytest.mark.parametrize("name", CHANGES)
def test_what_an_edit_changes_elsewhere(name: str, backwards: bool) -> None:
    text, old, new = CHANGES[name]
    states = [HEAD + text, HEAD + text.replace(old, new)]
    assert states[0] != states[1]
    document = Document("net.py")
    for state in (states[1], states[0], states[1]) if backwards else states:
        update, expected = document.update(state), from_scratch(state)
        assert expected is not None
        assert facts(update.findings) == expected
        assert not update.broken
