"""What may raise where its side was not taken, in both directions."""

from __future__ import annotations

import ast

import pytest
from asked import in_method, inside

from graphmend.transforms.legality.totality import may_raise


@pytest.mark.parametrize(
    "expression",
    ["x", "x + 1", "x * 2.5", "x / 2", "2 * x + 1", "x * x", "x.exp()", "x.sum()", "x.clone()", "torch.zeros_like(x)",
     "x.sigmoid() * 3", "x == 0", "x.any()", "x.float()", "-x.float()", "x.float().mean()", "F.relu(x.float())",
     "x.float().softmax(-1)", "x ** 2", "n + 1", "n * 2 - 1", "n / 2", "n // 3", "2 ** 3", "n ** 2", "-n", "f * 2",
     "n > 0", "s == ''", "(1, n)", "[n, 2]", "max(n, 1)", "abs(f)", "float(n)", "int(n)", "isinstance(o, int)",
     "math.tanh(f)", "math.isnan(f)", "f'{n}'", "x.shape", "x.dtype", "x.dim()", "x.reshape(-1)", "x[None]", "x[...]",
     "torch.where(x == 0, 1.0, 2.0)", "torch.tensor(n)", "n if n > 1 else 2", "n > 0 and f > 0", "lambda: 1 / 0"],
)  # fmt: skip
def test_it_is_total(expression: str) -> None:
    assert may_raise(*inside(expression)) == []


@pytest.mark.parametrize(
    "expression",
    ["-x", "+x", "~x", "x - 1", "x - x", "x.float() - True", "x & 1", "x << 1", "x % n", "x // n", "x @ x", "x * y",
     "x ** -1", "x ** n", "2 // x", "x > 1", "x.mean()", "F.relu(x)", "x.softmax(0)", "x.std()", "x.clamp(0)",
     "x.max()", "x.argmax()", "x.topk(1)", "x.sum(3)", "x.size(1)", "x.t()", "x.view(-1)", "x.flip(0)", "x[0]",
     "x[:1]", "x[n]", "x.shape[0]", "x.logical_and(y)", "x.pow(y)", "x.lerp(y, 0.5)", "torch.maximum(x, x * 1)",
     "torch.maximum(x, 1)", "x.add(1, alpha=1.5)", "torch.cat([x, y])", "x.float() * o", "x.item()", "torch.zeros(n)",
     "torch.finfo(x.dtype).max", "torch.tensor(o)", "1 / n", "1 // n", "3 % n", "n % f", "10.0 ** n", "0 ** n",
     "1 << n",
     "o + 1", "o > 1", "1 in o", "-o", "o[0]", "[1, 2][n]", "o.name", "o()", "len(o)", "max(o)", "max([])", "int(f)",
     "round(f)", "int(s)", "sum(o)", "getattr(o, 'a')", "math.log(f)", "math.sqrt(n)", "math.exp(f)", "'%d' % n",
     "f'{n:d}'", "q", "not x", "x and 1", "1 if x else 2", "[1 / e for e in (1, 2)]", "x.T"],
)  # fmt: skip
def test_it_may_raise(expression: str) -> None:
    if expression == "q":
        facts, node = inside("q", before="if o:\n    q = 1")
    else:
        facts, node = inside(expression)
    found = may_raise(facts, node)
    assert found
    assert all(d.kind == "exception" for d in found)


@pytest.mark.parametrize(
    ("expression", "before"),
    [
        ("-x", "z = x - 1"),
        ("-x", "z = x.mean()"),
        ("-x", "z = -x"),
        ("x.max() + 1", "z = x.max()"),
        ("1 / n", "z = 1 / n"),
        ("o.name", "print(o.name)"),
        ("F.relu(x)", "z = x.softmax(-1)"),
        ("x.mean()", "z = x.softmax(-1)"),
        ("-h", "h = x / 2"),
        ("F.relu(h)", "h = F.relu(x)"),
        ("x * y", "z = x * y"),
    ],
)
def test_what_was_evaluated_before_has_raised_already(expression: str, before: str) -> None:
    assert before.startswith("h") or may_raise(*inside(expression))
    assert may_raise(*inside(expression, before=before)) == []


@pytest.mark.parametrize(
    ("expression", "before"),
    [
        ("x.max() + 1", "z = x.max()\nx = y"),
        ("1 / n", "z = 1 / n\nn = 0"),
        ("1 / n", "if o:\n    z = 1 / n"),
        ("1 / n", "for e in i:\n    z = 1 / n"),
        ("1 / n", "z = o and 1 / n"),
        ("1 / n", "z = 1 / n if o else 0"),
        ("1 / n", "try:\n    z = 1 / n\nexcept ZeroDivisionError:\n    pass"),
        ("1 / n", "z = lambda: 1 / n"),
        ("1 / n", "z = [1 / n for e in i]"),
        ("o.name", "z = o.name\no.forget()"),
        ("-x", "z = x - 1\nx = y"),
    ],
)
def test_what_may_mean_something_else_has_not(expression: str, before: str) -> None:
    assert may_raise(*inside(expression, before=before))


def test_what_both_sides_evaluate() -> None:
    assert may_raise(*inside("x.max() + 1", other="x.max() * 2")) == []
    assert may_raise(*inside("x.max() + 1", other="x.min()"))


def test_what_the_first_conjunct_evaluates() -> None:
    assert may_raise(*inside("x.max()", test="x.max() > 0")) == []
    assert may_raise(*inside("x.float() * x.max()", test="(x == 0).any() and x.max() > 0"))
    assert may_raise(*inside("x > 1", test="x.sum() > 0")) == []  # complex numbers have no order


def test_a_protected_operation_divides_by_nothing() -> None:
    facts, node = inside("x // x")
    assert may_raise(facts, node)
    real, other = inside("x.long() // x.long()")
    assert may_raise(real, other)
    assert may_raise(real, other, protected={n for n in ast.walk(other) if isinstance(n, ast.expr)}) == []


_NET = """
def __init__(self, o):
    super().__init__()
    self.scale = 2.0
    self.linear = nn.Linear(2, 2)
    self.relu = nn.ReLU()
"""


@pytest.mark.parametrize(
    ("expression", "total"),
    [("self.scale * x", True), ("self.missing * x", False), ("self.training", True), ("-self.linear.weight", True)],
)
def test_attributes_of_a_module(expression: str, total: bool) -> None:
    assert (not may_raise(*in_method(expression, _NET))) is total
