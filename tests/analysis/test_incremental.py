"""A document's analysis after edits is the analysis of its text, at every state that parses."""

from __future__ import annotations

import random
import re

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.finding import Finding
from graphmend.analysis.incremental.document import IncrementalAnalysis
from graphmend.analysis.program.project import Project
from graphmend.analysis.syntax.source import Source

MODEL = """\
import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)
LIMIT = 1e4
SCALE = torch.ones(3)


def clamp(x, limit: float = LIMIT):
    if torch.isinf(x).any():
        x = x.clamp(-limit, limit)
    return x


def size(x):
    return x.shape[0]


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = None
        self.checkpointing = False

    # what most blocks need

    factor = 2

    def pick(self, x, k=2):
        return x * k if self.gate is None else x[self.gate]


class Block(Base):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.width = size(SCALE)
        self.scale = SCALE
        self.twice = self.scale * 2
        self.register_buffer("steps", torch.zeros(()))

    @torch.no_grad()
    def count(self, x):
        return (x > 0).sum()

    def forward(self, x: torch.Tensor):
        # Größe
        y = clamp(self.linear(x))
        if self.count(y) > self.width:
            y = y * 2
        if self.twice.sum() > self.factor or self.checkpointing:
            y = y + self.scale
        return self.pick(y)


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
        if self.verbose or LIMIT > 3:
            logger.info("size %s", size(x))
        return x[x.argmax()]
"""
SITE = """

@torch.compile
def step(net: Net, x: torch.Tensor):
    loss = net(x).sum().item()
    print("loss", loss)
    return loss
"""
NAMES = ["LIMIT", "SCALE", "logger", "x", "gate", "scale", "twice", "width", "factor", "checkpointing", "verbose"]
VALUES = ["3", "None", "False", "True", "torch.ones(3)", "self.width", "LIMIT", "SCALE", "size(x)", "x.sum()", "[1]"]
STATEMENTS = [
    "x = x + 1\n        ",
    "print(x)\n        ",
    "if x.sum() > 0:\n            x = -x\n        ",
    "x.nonzero()\n        ",
    "return VALUE\n        ",
    "self.NAME = VALUE\n        ",
    "self.NAME, y = VALUE, 2\n        ",
    "self.register_buffer('NAME', VALUE)\n        ",
    "block.NAME = True\n        ",
    "if self.NAME > 2:\n            print(x)\n        ",
    "global NAME\n        ",
    "\nNAME = VALUE\n",
    "\nNAME: int = VALUE\n",
    "\nimport torch as NAME\n",
    "\n    NAME = VALUE\n",
    "\n# NAME\n",
    "\n\n",
    "\ndef new(x):\n    return x.item()\n",
    "\nif NAME:\n    NAME = VALUE\n",
    ", NAME=VALUE",
    ", NAME: torch.Tensor",
    "@torch.no_grad()\n    ",
    "lambda x: x.item()",
]
PIECES = [*STATEMENTS, "# é ", "é = 2", "(", ")", '"', '"""', "    ", "torch.", ".item()", "\\\n", "\r\n", "\f"]


def piece(rng: random.Random) -> str:
    """Something to type."""
    if rng.random() < 0.3:
        return rng.choice("abx =\n().[]:'#")
    return rng.choice(PIECES).replace("NAME", rng.choice(NAMES)).replace("VALUE", rng.choice(VALUES))


def place(rng: random.Random, text: str) -> int:
    """Where one begins to type: at a statement, a line, in a header, anywhere."""
    where = rng.choice([r"^        (?=\S)", r"^", r"def \w+\(\w*", r"= \w+", ""])
    return rng.choice([m.end() for m in re.finditer(where, text, re.MULTILINE)] or [0])


def facts(findings: tuple[Finding, ...]) -> list[tuple[object, ...]]:
    return [
        (f.code, f.span, f.function, f.region, f.certainty, f.effect, f.key, f.related, f.message, len(f.evidence) > 0)
        for f in findings
    ]


def from_scratch(text: str) -> list[tuple[object, ...]] | None:
    """The findings of a whole text; None where it does not parse."""
    source = Source(text, "net.py")
    return facts(check(source).findings) if source.tree is not None else None


@pytest.mark.parametrize("seed", range(6))
def test_each_state_that_parses_says_what_a_fresh_check_says(seed: int) -> None:
    rng = random.Random(seed)
    document = IncrementalAnalysis("net.py")
    text = good = MODEL + SITE * (seed % 3 == 0)
    assert facts(document.update(text).findings) == from_scratch(text)
    at, parsed = 0, 0
    for _ in range(200):
        if rng.random() < 0.5:
            at = place(rng, text)
        if rng.random() < 0.6:
            put = piece(rng)
            edited, after = text[:at] + put + text[at:], at + len(put)
        else:
            edited, after = text[:at] + text[at + rng.randrange(1, 9) :], at
        update, expected = document.update(edited), from_scratch(edited)
        if expected is not None:
            assert not update.broken
            assert facts(update.findings) == expected
            parsed += 1
            good = edited
        elif text != good or rng.random() < 0.8:
            text = good  # taken back soon, as most slips are
            document.update(text)
            at = min(at, len(text))
            continue
        text, at = edited, min(after, len(edited))
    assert parsed > 10


TYPED = {
    "a body": ("\n        x = self.linear(y)\n        print(x)", "# Größe"),
    "a constructor": ("\n        self.gate = torch.ones(3)\n        self.factor = 3", "self.scale = SCALE"),
    "what pushes a statement on": ("x = -x\n        ", "size(x))\n        "),
    "a header": (", other: torch.Tensor, more=LIMIT", "def pick(self, x, k=2"),
    "a constant": ("\nMORE = torch.ones(4)\nOTHER: int = len('abc')\n", "SCALE = torch.ones(3)"),
    "an import": ("\nimport math as mathematics", "from torch import nn"),
    "between functions": ("\n\n# a remark\nMORE = 3\n", "return x.shape[0]"),
    "the body of a class": ("\n\n    # a remark\n    factor = 3", "# what most blocks need"),
}


@pytest.mark.parametrize("name", TYPED)
def test_no_key_starts_again_from_the_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    typed, behind = TYPED[name]
    document, text = IncrementalAnalysis("net.py"), MODEL
    document.update(text)
    monkeypatch.setattr(
        "graphmend.analysis.incremental.document.roots", lambda *_: pytest.fail("everything is walked again")
    )
    at = text.index(behind) + len(behind)
    for key in typed:
        text = text[:at] + key + text[at:]
        at += 1
        update, expected = document.update(text), from_scratch(text)
        assert bool(update.broken) == (expected is None)
        assert expected is None or facts(update.findings) == expected


def test_a_function_that_does_not_parse_leaves_the_others_alone() -> None:
    document = IncrementalAnalysis("net.py")
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
    document = IncrementalAnalysis("net.py")
    document.update(text)
    edited = text.replace(before, after)
    expected = from_scratch(edited)
    update = document.update(edited)
    assert bool(update.broken) == (expected is None)
    if expected is not None:
        assert facts(update.findings) == expected


def test_two_parts_that_do_not_parse_complete_each_other() -> None:
    head = '__all__ = [\n    "Net",\n'
    text = MODEL + f'\n\n{head}    "Base",\n]\n'
    document = IncrementalAnalysis("net.py")
    expected = document.update(text)
    assert document.update(text.replace(head, "")).broken
    assert document.update(text) == expected


def test_the_head_of_a_method_is_put_back_by_an_edit_of_the_one_before() -> None:
    head = "    @torch.no_grad()\n    def last(\n    "
    before = 'class Two(Net):\n    def first(self, x):\n        """Text (`x`)."""\n        return x\n\n'
    text = f"{MODEL}\n\n{before}{head}    self,\n        x: torch.Tensor,\n    ):\n        return x.item()\n"
    document = IncrementalAnalysis("net.py")
    expected = document.update(text)
    headless = text.replace(head, "    ")
    assert document.update(headless).broken
    assert document.update(headless.replace("Text (`x`)", "(Text (`x`)")).broken
    assert document.update(text) == expected


def test_lines_above_move_what_stands_below() -> None:
    document = IncrementalAnalysis("net.py")
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
    document = IncrementalAnalysis("net.py")
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
    document = IncrementalAnalysis("net.py")
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
    document = IncrementalAnalysis("net.py")
    assert not document.update(text).findings
    changed = text.replace("self.k = 3", "self.k = torch.ones(())")
    assert [f.code for f in document.update(changed).findings] == ["GM101"]


HEAD = "import torch\nfrom torch import nn\n\n"
CHANGES = {
    "what a property's setter compiles": (
        "class N(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x.item()\n\n"
        "class H:\n    @property\n    def net(self):\n        return self._net\n\n"
        "    @net.setter\n    def net(self, value):\n        self._net = torch.compile(value)\n\n"
        "h = H()\nh.net = N()\n",
        "torch.compile(value)",
        "value",
    ),
    "whether a subclass is compiled": (
        "class B(nn.Module):\n    def __init_subclass__(cls, compile=False):\n        if compile:\n"
        "            cls.forward = torch.compile(cls.forward)\n\n"
        "class N(B, compile=True):\n    def forward(self, x: torch.Tensor):\n        return x.item()\n",
        "if compile:",
        "if not compile:",
    ),
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
    "a method of a class without forward": (
        "class N(nn.Module):\n    def norm(self, x):\n        return 3\n\n"
        "class M(N):\n    def scale(self):\n        return 2\n",
        "return 3",
        "return x.item() * self.scale()",
    ),
    "what a class without forward overrides": (
        "class N(nn.Module):\n    def norm(self, x: torch.Tensor):\n        return self.scale(x)\n\n"
        "class M(N):\n    def scale(self, x):\n        return 2\n",
        "return 2",
        "return x.item()",
    ),
    "a method of a class without forward gives nothing": (
        "class N(nn.Module):\n    def norm(self, x: torch.Tensor):\n        return x.item()\n",
        "return x.item()",
        "x.item()",
    ),
    "a method of a class without forward is said to give nothing": (
        "class N(nn.Module):\n    def norm(self, x: torch.Tensor):\n        return x.item()\n",
        "Tensor):",
        "Tensor) -> None:",
    ),
    "a derived class gets a forward": (
        "class N(nn.Module):\n    def norm(self, x: torch.Tensor):\n        return x.item()\n\n"
        "class M(N):\n    def backward(self, x):\n        return x\n",
        "backward",
        "forward",
    ),
    "a class with forward derives from one without": (
        "class N(nn.Module):\n    def norm(self, x: torch.Tensor):\n        return x.item()\n\n"
        "class M(nn.Module):\n    def forward(self, x):\n        return x\n",
        "M(nn.Module)",
        "M(N)",
    ),
    "a base of a class with forward is another": (
        "class N(nn.Module):\n    def norm(self, x: torch.Tensor):\n        return x.item()\n\n"
        "class O(nn.Module):\n    pass\n\nBase = O\n\n"
        "class M(Base):\n    def forward(self, x):\n        return x\n",
        "Base = O",
        "Base = N",
    ),
    "a method begins to compute with its module": (
        "class N(nn.Module):\n    def forward(self, x):\n        return x\n\n"
        "    def encode(self, x: torch.Tensor):\n        return x[x > 0] * 2\n",
        "* 2",
        "* self.forward(x)",
    ),
    "a method beside a forward measures": (
        "class N(nn.Module):\n    def forward(self, x):\n        return x\n\n"
        "    def encode(self, x: torch.Tensor):\n        y = self.forward(x).item()\n        return y\n",
        "return y",
        "return x + y",
    ),
    "a forward calls what was offered": (
        "class N(nn.Module):\n    def forward(self, x: torch.Tensor):\n        return x\n\n"
        "    def encode(self, x: torch.Tensor):\n        return self.forward(x) * x.item()\n",
        "    return x\n",
        "    return self.encode(x)\n",
    ),
    "an offered function gives another result": (
        "class N(nn.Module):\n    def forward(self, x):\n        return x\n\n"
        "def loss(x: torch.Tensor):\n    print(x)\n    return x\n",
        "return x\n\ndef",
        "return x.flatten()\n\ndef",
    ),
    "an offered function measures": (
        "class N(nn.Module):\n    def forward(self, x):\n        return x\n\n"
        "def loss(x: torch.Tensor):\n    print(x)\n    y = 2\n    return y\n",
        "return y",
        "return x",
    ),
    "an offered function comes to serve a script": (
        "class N(nn.Module):\n    def forward(self, x):\n        return x\n\n"
        "def loss(x: torch.Tensor):\n    print(x)\n    return x\n\ndef main():\n    return 3\n",
        "return 3",
        "return loss(torch.ones(3))",
    ),
    "an offered function comes to serve the top level": (
        "class N(nn.Module):\n    def forward(self, x):\n        return x\n\n"
        "def loss(x: torch.Tensor):\n    print(x)\n    return x\n\nDONE = 3\n",
        "DONE = 3",
        "DONE = loss(torch.ones(3))",
    ),
    "an offered function measures with what is imported now": (
        "import math as time\n\nclass N(nn.Module):\n    def forward(self, x):\n        return x\n\n"
        "def loss(x: torch.Tensor):\n    print(x)\n    return x + time.time()\n",
        "import math as time",
        "import time as time",
    ),
    "a base's method calls what the class with tensors defines": (
        "class B:\n    def at(self, x: torch.Tensor):\n        print(x)\n        return x\n\n"
        "class N(B, nn.Module):\n    def _of(self, x):\n        return x\n",
        "        return x\n\nclass N",
        "        return self._of(x)\n\nclass N",
    ),
    "what a decorator hands on": (
        "def noted(f):\n    f.__doc__ = str(f).join(print())\n    return f\n\n"
        "def documented(f=None):\n    def deco(f):\n        return noted(f)\n    if f:\n        return deco(f)\n"
        "    return deco\n\n@torch.compile\n@documented\ndef f(x: torch.Tensor):\n    return x\n",
        "    return f\n\n",
        "    return lambda x: print(x)\n\n",
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
    document = IncrementalAnalysis("net.py")
    for state in (states[1], states[0], states[1]) if backwards else states:
        update, expected = document.update(state), from_scratch(state)
        assert expected is not None
        assert facts(update.findings) == expected
        assert not update.broken


def test_what_calls_give_is_followed() -> None:
    text = """\
import torch

@torch.compile
def clip(x, limit):
    return x if limit > 3 else x + 1

def main(n):
    clip(torch.ones(n), 2.5)
"""
    document = IncrementalAnalysis("net.py")
    changed = text.replace("2.5", "torch.ones(())")
    for state, codes in ((text, []), (changed, ["GM101"]), (text, []), (changed, ["GM101"])):
        found = document.update(state).findings
        assert [f.code for f in found] == codes
        assert facts(found) == from_scratch(state)


def test_the_analysis_of_another_document_leaves_results_as_they_are() -> None:
    project = Project(lean=True)
    text = "import torch\n\n\n@torch.compile\ndef case(x: torch.Tensor):\n    print(x)\n    return x\n"
    kept = check(Source(text, "one.py"), project)
    assert IncrementalAnalysis("other.py", project).update(text).findings
    assert kept.facts(kept.findings[0]).function.name == "case"
