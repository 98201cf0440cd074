"""What does more than compute, in both directions."""

from __future__ import annotations

import pytest
from asked import in_method, inside

from graphmend.transforms.legality.effects import effects, warns
from graphmend.transforms.legality.speculation import repeatable, speculate

_NET = """
def __init__(self):
    super().__init__()
    self.act = nn.ReLU()
    self.kept = nn.ReLU(False)
    self.here = nn.ReLU(True)
    self.named = nn.LeakyReLU(0.1, inplace=True)
    self.table = nn.Embedding(3, 2)
    self.bounded = nn.Embedding(3, 2, None, 1.0)
    self.linear = nn.Linear(2, 2)
    self.number = 2.0

@property
def plain(self):
    return self.number

@property
def counting(self):
    self.number = self.number + 1
    return self.number

def helper(self, x):
    return x

def keeps(self, x):
    self.last = x
    return x

def around(self, x):
    return self.helper(x)

def beside(self, x):
    return self.keeps(x)
"""


@pytest.mark.parametrize(
    "expression",
    ["F.relu(x)", "F.relu(x, False)", "F.leaky_relu(x, 0.1)", "F.leaky_relu(x, 0.1, False)", "x.add(1)", "max(n, 2)",
     "[e for e in (1, 2)]", "sum([n, 1])", "math.sqrt(f)", "F.dropout(x, 0.5, training=False)"],
)  # fmt: skip
def test_it_only_computes(expression: str) -> None:
    facts, node = inside(expression)
    assert effects(facts, node) == []
    assert repeatable(facts, node)


@pytest.mark.parametrize(
    "expression",
    ["F.relu(x, True)", "F.relu(x, n > 0)", "F.leaky_relu(x, 0.1, True)", "F.hardtanh(x, -1.0, 1.0, True)",
     "F.relu(x, **o)", "F.relu(*i)", "torch.relu_(x)", "F.relu_(x)", "x.relu_()", "x.__iadd__(1)",
     "torch.add(x, 1, out=y)", "F.embedding(x, y, None, 1.0)", "F.dropout(x)", "torch.rand(2)", "o(x)", "print(x)",
     "next(o)", "list(o)", "sum(o)", "[e for e in o]", "x.item()", "int(x)", "(z := x)", "setattr(o, 'a', 1)",
     "torch.set_grad_enabled(True)", "nn.init.zeros_(x)"],
)  # fmt: skip
def test_it_does_more(expression: str) -> None:
    assert effects(*inside(expression))


@pytest.mark.parametrize(
    ("expression", "only_computes"),
    [("self.act(x)", True), ("self.kept(x)", True), ("self.here(x)", False), ("self.named(x)", False),
     ("self.table(x)", True), ("self.bounded(x)", False), ("self.linear(x)", True), ("self.plain * x", True),
     ("self.counting * x", False), ("self.number * x", True), ("self.helper(x)", True), ("self.keeps(x)", False),
     ("self.around(x)", True), ("self.beside(x)", False), ("self.training", True)],
)  # fmt: skip
def test_layers_and_attributes_of_a_module(expression: str, only_computes: bool) -> None:
    assert (not effects(*in_method(expression, _NET))) is only_computes


def test_a_warning_is_seen() -> None:
    assert warns(*inside("x.std()"))
    assert not warns(*inside("x.sum()"))
    assert any(d.kind == "output" for d in speculate(*inside("x.std()")).differences)
