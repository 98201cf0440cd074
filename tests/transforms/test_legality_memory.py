"""Who else sees a tensor, in both directions."""

from __future__ import annotations

import ast

import pytest
from asked import inside, of_function

from graphmend.analysis.facts.function_facts import FunctionFacts
from graphmend.transforms.code.bindings import reaching
from graphmend.transforms.legality import memory
from graphmend.transforms.legality.memory import changed_in_place, escapes, may_share, only_here, seen_elsewhere, shares


@pytest.mark.parametrize(
    "expression",
    ["x", "+x", "torch.positive(x)", "x.contiguous()", "x.to(torch.float32)", "x.float()", "x.cpu()", "x.type_as(y)",
     "x.requires_grad_()", "x.flatten()", "x if n else y", "o or x", "max(x, y)", "F.dropout(x, 0.5, False)",
     "nn.Identity()(x)", "(x)", "F.relu(x, True)", "x.add_(1)", "o(x)", "torch.atleast_1d(x)"],
)  # fmt: skip
def test_it_may_be_the_tensor_itself(expression: str) -> None:
    found = shares(*inside(expression))
    assert "x" in found.same
    assert not found.fresh


@pytest.mark.parametrize(
    "expression",
    ["x.detach()", "x.view(-1)", "x.T", "x.data", "x[0]", "x[1:]", "x[None]", "x[...]", "x[n]", "x.unbind()[0]",
     "x.expand(2)", "x.split(1)", "nn.Flatten()(x)", "torch.einsum('i->i', x)", "x.chunk(2)[0]", "torch.squeeze(x)"],
)  # fmt: skip
def test_it_may_share_memory(expression: str) -> None:
    found = shares(*inside(expression))
    assert "x" in found.paths
    assert not found.fresh


@pytest.mark.parametrize(
    "expression",
    ["x * 1", "x + 0", "-x", "abs(x)", "x == y", "x.sum()", "x.clone()", "x.to(torch.float32, copy=True)", "x[x > 0]",
     "torch.cat([x, y])", "torch.where(x > 0, x, y)", "x.repeat(1)", "F.relu(x)", "x.clamp(0)", "(x * 2).detach()",
     "x[[0, 1]]", "torch.zeros(2)", "nn.Linear(2, 2)(x)", "n", "1.5", "x.shape[0]"],
)  # fmt: skip
def test_it_is_new(expression: str) -> None:
    assert shares(*inside(expression)).fresh


def test_names_are_followed_through_what_they_are_bound_to() -> None:
    facts, node = inside("v", before="v = x[0]")
    assert shares(facts, node).paths == {"v", "x"}
    facts, node = inside("b", before="a, b = x, y * 2")
    assert shares(facts, node).paths == {"b"}


@pytest.mark.parametrize(
    ("one", "other", "may"),
    [
        ("x", "y", True),
        ("x", "x[0]", True),
        ("x * 1", "x", False),
        ("h", "x", False),
        ("h", "v", True),
        ("h", "k", False),
        ("x", "o.state", True),
        ("h", "o.state", False),
        ("given", "o.state", True),
    ],
)
def test_two_values(one: str, other: str, may: bool) -> None:
    before = "h = x * 2\nv = h[0]\nk = x + 1\ngiven = x * 3\no.state = given"
    facts, node = inside(f"({one}, {other})", before=before)
    assert isinstance(node, ast.Tuple)
    assert may_share(facts, *node.elts) is may


@pytest.mark.parametrize(
    ("behind", "changed"),
    [("r.add_(1)", True), ("r[0] = 1", True), ("r += 1", True), ("x.add_(1)", True), ("v.mul_(2)", True),
     ("x[0] = 1", True), ("F.relu(x, True)", True), ("torch.add(y, 1, out=x)", True), ("y.add_(1)", True),
     ("x.add(1)", False), ("k = x * 2\nk.add_(1)", False), ("for e in x:\n    e.zero_()", True),
     ("k = (x,)\nk += (y,)", False), ("k = [x]\nk[0] = y", False), ("n += 1", False), ("self_act(x)", False)],
)  # fmt: skip
def test_changed_in_place(behind: str, changed: bool) -> None:
    facts, _ = inside("x", before="v = x[0]", behind=f"{behind}\nreturn r")
    assert changed_in_place(facts, "r") is changed


def test_a_change_before_the_branch_is_none_behind_it() -> None:
    facts, _ = inside("x", before="x.add_(1)")
    assert changed_in_place(facts, "r")
    assert not changed_in_place(facts, "r", behind=facts.statement)


@pytest.mark.parametrize(
    ("behind", "does"),
    [("return r", True), ("return r.view(-1)", True), ("return r * 2", False), ("o.state = r\nreturn n", True),
     ("k = r\nreturn n", True), ("o(r)\nreturn n", True), ("y.add_(1)\nreturn n", True), ("return (n, [r])", True)],
)  # fmt: skip
def test_escapes(behind: str, does: bool) -> None:
    facts, _ = inside("x", behind=behind)
    assert escapes(facts, "r") is does


def test_a_new_tensor_is_seen_nowhere_else() -> None:
    facts, node = inside("h + 1", before="h = x * 2")
    name = ast.Name("h", ast.Load())
    assert not seen_elsewhere(facts, name, rebound="h")
    assert seen_elsewhere(facts, ast.Name("x", ast.Load()), rebound="x")
    facts, node = inside("h + 1", before="h = x * 2\nk = h.view(-1)")
    assert seen_elsewhere(facts, name, rebound="h")
    facts, node = inside("h + 1", before="h = x * 2\no.state = h")
    assert seen_elsewhere(facts, name, rebound="h")
    assert not seen_elsewhere(facts, node)


def test_a_name_is_what_it_was_bound_to_last() -> None:
    facts, node = inside("h", before="h = x\nh = h * 2")
    assert shares(facts, node).paths == {"h"}
    facts, node = inside("h", before="h = x\nif o:\n    h = h * 2")
    assert shares(facts, node).paths == {"h", "x"}
    facts, node = inside("h", before="h = x * 2\nfor e in i:\n    y = h\n    h = x")
    assert shares(facts, node).paths >= {"h", "x"}


BRANCH = "if (h == y).any():\n    h = h.clamp(-1, 1)\n"


@pytest.mark.parametrize(
    ("body", "alone"),
    [
        ("h = x * 2\n" + BRANCH + "return h", True),
        ("h = x\nr = h\nh = r + h\n" + BRANCH + "return h, r", True),
        ("h = o(x)\nh = y + h\n" + BRANCH + "return o(h)", True),
        ("h = x * 2\n" + BRANCH + "kept = [h]\nreturn kept", True),
        ("h = x\n" + BRANCH + "return h", False),
        ("h = o(x)\n" + BRANCH + "return h", False),
        ("h = x * 2\nr = h\n" + BRANCH + "return h, r", False),
        ("h = x * 2\nr = h[0]\n" + BRANCH + "return h, r", False),
        ("h = x * 2\nr = (h, 1)\n" + BRANCH + "return h, r", False),
        ("h = x * 2\no(h)\n" + BRANCH + "return h", False),
        ("h = x * 2\no.kept = h\n" + BRANCH + "return h", False),
        ("h = x * 2\ndef later():\n    return h\n" + BRANCH + "return later", False),
        ("h = x * 2\nr = [h for _ in i]\n" + BRANCH + "return h, r", False),
        ("h = x * 2\nfor _ in i:\n    h = h * 2\n    if (h == y).any():\n        h = h.clamp(-1, 1)\n    o(h)\n"
         "return h", False),
    ],
)  # fmt: skip
def test_nothing_else_has_held_what_a_name_is_bound_to(body: str, alone: bool) -> None:
    parameters = "x: torch.Tensor, y: torch.Tensor, i=(), o=None"
    lines = "\n    ".join(body.splitlines())
    facts = of_function(f"import torch\n\n@torch.compile\ndef case({parameters}):\n    {lines}\n")
    statement = facts.statement
    assert isinstance(statement, ast.If)
    assert isinstance(bound := statement.body[0], ast.Assign)
    assert only_here(facts, "h", (bound.value, ast.Name("h", ast.Load())), statement) is alone


def test_what_stands_behind_a_name_does_not_reach_it() -> None:
    """But in loops, where it does."""
    facts, node = inside("h", before="h = o(x)\nh = h * 2\nv = h[0]\nh = y")
    assert shares(facts, node).paths == {"h", "y"}
    facts, node = inside("v", before="v = x[0]\nfor _ in i:\n    v = h\n    h = y", test="(x == x).any()")
    assert "y" in shares(facts, node).paths


@pytest.mark.parametrize("line", ["x = o(x)", "x = o(x)[0]", "x = x.view(-1)", "if n:\n    x = o(x)"])
def test_a_long_function_is_followed_a_little_way(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def counted(facts: FunctionFacts, node: ast.Name) -> ast.expr | None:
        nonlocal calls
        calls += 1
        return reaching(facts, node)

    monkeypatch.setattr(memory, "reaching", counted)
    for lines in (300, 600):
        facts, node = inside("x", before="\n".join([line] * lines))
        calls = 0
        assert "x" in shares(facts, node).paths
        assert not shares(facts, node).fresh
        assert calls < 100
