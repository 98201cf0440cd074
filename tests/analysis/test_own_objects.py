"""GM510: what TorchDynamo traces of objects of the program's classes beside what it does not (measured, torch 2.13)."""

from __future__ import annotations

import sys
import types

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source

CLASSES = """
import dataclasses
import enum
import functools
import typing

import torch
from torch import nn

class Own:
    def __init__(self, at=1):
        self.at = at
    def __mul__(self, other): return other * 2
    def __rmul__(self, other): return other * 2
    def __imul__(self, other): return self
    def __lt__(self, other): return self.at < other.at
    def __index__(self): return self.at
    def __str__(self): return "own"
    def two(self, x): return x * 2

class Below(Own): pass

class Layer(nn.Module):
    def __mul__(self, other): return other * 2

@dataclasses.dataclass(order=True)
class Data:
    at: int
    def __mul__(self, other): return other * 2

class Pair(typing.NamedTuple):
    at: int
    def __mul__(self, other): return other * self.at

class Kind(enum.Enum):
    A = 1
    def __mul__(self, other): return other * 2

class Described:
    def __get__(self, owner, cls): return 3

class Holder:
    part = Described()

@functools.cache
def cached(n): return n

LAYER = Layer()
"""
BREAK = [
    "Own() * x",
    "x * Own()",
    "Below() * x",
    "LAYER * x",
    "Data(1) * x",
    "x[Own()]",
    "x * sorted([Own(2), Own()])[0].at",
    "x * max(Own(2), Own()).at",
    "x * min([Own(2), Own()], key=lambda own: own.at).at",
    "x * sorted([Data(2), Data(1)])[0].at",
    "x * len(f'{Own()}')",
    "x * len('%s' % Own())",
    "x * cached.cache_info().hits",
    "x * len(Own.mro())",
]
TRACED = [
    "x * (Own() * 2)",
    "x * (2 * Own())",
    "Pair(1) * x",
    "Kind.A * x",
    "x * (1, 2)[Own()]",
    "x * 2 if Own() < Own(2) else x",
    "x * sorted([Own(2), Own()], key=lambda own: own.at)[0].at",
    "x * len(f'{Own()!s}')",
    "x * len(str(Own()))",
    "x * Holder().part",
    "x * cached(2)",
    "Own().two(x)",
    "x * max(2, 1)",
    "x * 2 if Data(1) < Data(2) else x",
]


def text_of(expression: str) -> str:
    return f"{CLASSES}\n@torch.compile\ndef f(x: torch.Tensor):\n    return {expression}\n"


def found(expression: str) -> set[str]:
    findings = check(Source(text_of(expression), "model.py")).findings
    return {finding.code for finding in findings if not finding.code.startswith("GM7")}


@pytest.mark.parametrize("expression", BREAK)
def test_breaks(expression: str) -> None:
    assert found(expression) == {"GM510"}


@pytest.mark.parametrize("expression", TRACED)
def test_is_traced(expression: str) -> None:
    assert found(expression) == set()


@pytest.mark.torch
@pytest.mark.parametrize(("expressions", "breaks"), [(BREAK, True), (TRACED, False)])
def test_dynamo_agrees(monkeypatch: pytest.MonkeyPatch, expressions: list[str], breaks: bool) -> None:
    torch = pytest.importorskip("torch")
    for expression in expressions:
        torch._dynamo.reset()
        module = types.ModuleType("program")
        monkeypatch.setitem(sys.modules, "program", module)  # where `dataclasses` looks annotations up
        program = vars(module)
        exec(text_of(expression).replace("torch.compile", 'torch.compile(backend="eager", fullgraph=True)'), program)
        try:
            program["f"](torch.ones(3))
        except torch._dynamo.exc.Unsupported:
            assert breaks, expression
        else:
            assert not breaks, expression


BODIES = ("__mul__", "__rmul__", "__index__")


@pytest.mark.parametrize("expression", ["Branches(x) * x", "x * Branches(x)", "x[Branches(x)]", "[x, x][Branches(x)]"])
def test_the_method_that_python_calls_is_read(expression: str) -> None:
    methods = "".join(f"    def {name}(self, *others): return self.at.sum().item()\n" for name in BODIES)
    own = f"class Branches(Own):\n{methods}"
    text = text_of(expression).replace("\n@torch.compile", f"{own}\n\n@torch.compile")
    assert "GM301" in {finding.code for finding in check(Source(text, "model.py")).findings}
