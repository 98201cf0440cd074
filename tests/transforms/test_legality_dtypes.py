"""Which dtypes may come, and which gradients a value carries."""

from __future__ import annotations

import ast

import pytest
from asked import inside, of_function

from graphmend.transforms.legality.dtypes import casts_into, in_float32, kind, kinds
from graphmend.transforms.legality.gradients.sides import carries, gradient_differences


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("x == 0", "bool"),
        ("x.isnan()", "bool"),
        ("x.any()", None),
        ("(x == 0).any()", "bool"),
        ("x.float()", "float"),
        ("x.long()", "int"),
        ("x.byte()", "uint8"),
        ("x.to(torch.int32)", "int"),
        ("x / 2", None),
        ("x.float() / 2", "float"),
        ("x.long() / 2", "float"),
        ("x.long() + 1", "int"),
        ("x.long() + 1.5", "float"),
        ("x.float().exp()", "float"),
        ("x.softmax(-1)", "float"),
        ("nn.Linear(2, 2)(x)", "float"),
        ("x.argmax()", "int"),
        ("x", None),
        ("n", "int"),
        ("1.5", "float"),
        ("True", "bool"),
        ("torch.zeros(2)", "float"),
        ("x.float()[0]", "float"),
        ("x.float() if n else y.float()", "float"),
        ("x.float() if n else y", None),
    ],
)
def test_kinds(expression: str, expected: str | None) -> None:
    assert kind(*inside(expression)) == expected


def test_what_did_not_raise_tells() -> None:
    facts, node = inside("x", before="z = x - 1")
    assert kinds(facts, node) == {"uint8", "int", "float", "complex"}
    facts, node = inside("x", before="z = x.softmax(-1)")
    assert kinds(facts, node) == {"float"}
    facts, node = inside("x", before="z = nn.Linear(2, 2)(x)")
    assert kinds(facts, node) == {"float"}
    facts, node = inside("x", test="x.sum() > 0")
    assert "complex" not in kinds(facts, node)
    facts, node = inside("x", before="z = x.softmax(-1)\nx = y")
    assert "int" in kinds(facts, node)


@pytest.mark.parametrize(
    ("target", "value", "answer"),
    [("x.float()", "2", True), ("x.float()", "x.long()", True), ("x.long()", "1.5", False), ("x.long()", "2", True),
     ("x", "1.5", None), ("x", "True", True), ("x == 0", "2", False)],
)  # fmt: skip
def test_casts(target: str, value: str, answer: bool | None) -> None:
    facts, node = inside(f"({target}, {value})")
    assert isinstance(node, ast.Tuple)
    assert casts_into(facts, *node.elts) is answer


def test_float32() -> None:
    assert in_float32(0.5)
    assert in_float32(2**24)
    assert in_float32(float("inf"))
    assert not in_float32(0.1)
    assert not in_float32(2**24 + 1)
    assert not in_float32(1e300)


@pytest.mark.parametrize(
    ("expression", "paths"),
    [("x", {"x"}), ("x * y", {"x", "y"}), ("x.detach()", set()), ("x.data", set()), ("x > y", set()),
     ("torch.zeros_like(x)", set()), ("x.long()", set()), ("x.round()", {"x"}), ("o.a * o.b", {"o.a", "o.b"}),
     ("x.detach() * y", {"y"}), ("torch.where(x > 0, y, 0.0)", {"y"}), ("x.new_zeros(2)", set()), ("x[0]", {"x"}),
     ("torch.zeros(2)", set()), ("torch.zeros(2, requires_grad=True)", {"torch.zeros(2, requires_grad=True)"}),
     ("n", set()), ("d * x", {"x"}), ("(x, y)", {"x", "y"})],
)  # fmt: skip
def test_carries(expression: str, paths: set[str]) -> None:
    assert carries(*inside(expression, before="d = y.detach()")) == paths


def differences(body: str, orelse: str | None) -> set[str]:
    other = f"    else:\n        {orelse}\n" if orelse else ""
    text = (
        "import torch\n\n@torch.compile\ndef case(x: torch.Tensor, w: torch.Tensor):\n    y = x * 2\n"
        f"    d = x.detach()\n    if (x == 0).any():\n        {body}\n{other}    return y\n"
    )
    facts = of_function(text)
    statement = facts.statement
    assert isinstance(statement, ast.If)
    sides = [
        [s.value for s in side if isinstance(s, (ast.Assign, ast.Return))]
        for side in (statement.body, statement.orelse)
    ]
    evaluated = [[v for v in side if v is not None] for side in sides]
    return {d.kind for d in gradient_differences(facts, statement, evaluated) if "NaN" not in d.says}


@pytest.mark.parametrize(
    ("body", "orelse", "expected"),
    [
        ("y = x * 2", "y = x + 1", set()),
        ("y = x * w.sum()", "y = x + 1", {"zero-gradients"}),
        ("y = torch.zeros_like(x)", "y = x + 1", {"gradients"}),
        ("y = x.detach()", "y = torch.zeros_like(x)", set()),
        ("y = d * 2", "y = x + 1", {"gradients"}),
        ("y = y + 1", None, set()),
        ("y = y * w.sum()", None, {"zero-gradients"}),
        ("y = y.detach()", None, {"gradients"}),
        ("return x", None, {"zero-gradients"}),
        ("return y * 2", None, set()),
    ],
)
def test_gradients_of_a_selection(body: str, orelse: str | None, expected: set[str]) -> None:
    assert differences(body, orelse) == expected


@pytest.mark.parametrize(
    ("contexts", "expected"),
    [
        (["torch.no_grad()"], "off"),
        (["torch.inference_mode()"], "off"),
        (["torch.set_grad_enabled(False)"], "off"),
        (["torch.no_grad()", "torch.autocast('cpu')"], "off"),
        (["torch.enable_grad()"], "unknown"),
        (["torch.no_grad()", "torch.enable_grad()"], "unknown"),
        (["torch.no_grad()", "torch.set_grad_enabled(True)"], "unknown"),
        (["torch.no_grad()", "torch.set_grad_enabled(n)"], "unknown"),
        (["torch.no_grad()", "torch.inference_mode(False)"], "unknown"),
        (["torch.inference_mode(mode=False)"], "unknown"),
        (["torch.enable_grad()", "torch.no_grad()"], "off"),
        (["torch.no_grad()", "unknown()"], "unknown"),
    ],
)
def test_the_innermost_context_decides(contexts: list[str], expected: str) -> None:
    lines = [f"{'    ' * (i + 1)}with {c}:" for i, c in enumerate(contexts)]
    deep = "    " * (len(contexts) + 1)
    lines += [f"{deep}if (x == 0).any():", f"{deep}    x = x + 1", "    return x"]
    facts = of_function(
        "import torch\nfrom elsewhere import unknown\n\n@torch.compile\ndef case(x: torch.Tensor, n: bool = True):\n"
        + "\n".join(lines)
        + "\n"
    )
    assert facts.gradients(facts.statement) == expected


def test_a_call_switches_gradients_on_from_there() -> None:
    text = (
        "import torch\n\n@torch.compile\ndef case(x: torch.Tensor):\n    with torch.no_grad():\n"
        "        {}\n        if (x == 0).any():\n            x = x + 1\n    return x\n"
    )
    facts = of_function(text.format("torch.set_grad_enabled(True)"))
    assert facts.gradients(facts.statement) == "unknown"
    facts = of_function(text.format("pass"))
    assert facts.gradients(facts.statement) == "off"


@pytest.mark.parametrize(
    ("decorators", "expected"),
    [
        (["torch.no_grad()"], "off"),
        (["torch.no_grad"], "off"),
        (["torch.autograd.inference_mode()"], "off"),
        (["torch.set_grad_enabled(False)"], "off"),
        (["torch.inference_mode(False)"], "unknown"),
        (["torch.set_grad_enabled(True)"], "unknown"),
        (["torch.no_grad()", "torch.enable_grad()"], "unknown"),
        (["torch.enable_grad()", "torch.no_grad()"], "off"),
    ],
)
def test_the_innermost_decorator_decides(decorators: list[str], expected: str) -> None:
    facts = of_function(
        "import torch\n\n@torch.compile\n"
        + "".join(f"@{decorator}\n" for decorator in decorators)
        + "def case(x: torch.Tensor):\n    if (x == 0).any():\n        x = x + 1\n    return x\n"
    )
    assert facts.gradients(facts.statement) == expected


@pytest.mark.parametrize("call", ["torch.autograd.set_grad_enabled(True)", "torch._C._set_grad_enabled(True)"])
def test_every_name_of_a_gradient_mode_counts(call: str) -> None:
    text = (
        "import torch\n\n@torch.compile\ndef case(x: torch.Tensor):\n    with torch.no_grad():\n"
        f"        {call}\n        if (x == 0).any():\n            x = x + 1\n    return x\n"
    )
    facts = of_function(text)
    assert facts.gradients(facts.statement) == "unknown"
