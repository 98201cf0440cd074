"""The questions that rewrites ask, each answered in both directions."""

from __future__ import annotations

import ast
import textwrap

import pytest
from by_hand import PREDICATE, facts_at, scalar_tensor, tensor

from graphmend.analysis.facts.function_facts import FunctionFacts
from graphmend.transforms.code.liveness import alive, fresh, live_into, reads, writes
from graphmend.transforms.if_conversion.not_taken.double_where import singular
from graphmend.transforms.legality.context import observed
from graphmend.transforms.legality.gradients.sides import leak
from graphmend.transforms.legality.memory import changed_in_place, escapes
from graphmend.transforms.legality.same_shape import alike
from graphmend.transforms.legality.speculation import speculate

VALUES = {"x": tensor(2), "y": tensor(2), "z": tensor(2, shape="other"), "i": scalar_tensor("int64"), "c": PREDICATE}
HEAD = "import torch\nimport torch.nn.functional as F\nimport math\n\n\n"


def at(expression: str, *, no_grad: bool = False) -> tuple[FunctionFacts, ast.expr]:
    node = ast.unparse(ast.parse(expression, mode="eval").body)
    _, facts = facts_at(f"{HEAD}def f(x, y, z, i, c, g):\n    r = {expression}\n", node, VALUES, no_grad=no_grad)
    assert isinstance(facts.node, ast.expr)
    return facts, facts.node


def within(body: str, statement: str) -> FunctionFacts:
    return facts_at(f"{HEAD}def f(x, y, z):\n    {body}\n", statement, VALUES)[1]


@pytest.mark.parametrize(
    "expression",
    ["x + 1", "torch.abs(x)", "x.clone()", "x * y", "F.relu(x)", "x.sum()", "torch.zeros_like(x)", "-x", "x[:1]"],
)
def test_evaluated_in_vain_without_a_trace(expression: str) -> None:
    found = speculate(*at(expression))
    assert not found.blockers
    assert not found.differences


@pytest.mark.parametrize(
    "expression",
    [
        "g(x)",
        "x.add_(1)",
        "torch.rand(3)",
        "F.dropout(x)",
        "F.relu(x, inplace=True)",
        "torch.add(x, y, out=z)",
        "(w := x)",
        "x.item()",
        "torch.manual_seed(0)",
    ],
)
def test_effects_block(expression: str) -> None:
    assert speculate(*at(expression)).blockers


@pytest.mark.parametrize("expression", ["x @ y", "x * z", "x[5]", "torch.cat([x, z])", "i // i"])
def test_possible_exceptions_are_named(expression: str) -> None:
    found = speculate(*at(expression))
    assert not found.blockers
    assert found.differences


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        ("x + 1", "never"),
        ("x * 3", "never"),
        ("x.clone()", "never"),
        ("torch.clamp(x, min=0)", "never"),
        ("x * y", "at infinity"),
        ("F.gelu(x)", "at infinity"),
        ("x ** 2", "at infinity"),
        ("x.sqrt()", "anywhere"),
        ("1 / x", "anywhere"),
        ("x / y", "anywhere"),
        ("x ** 0.5", "anywhere"),
    ],
)
def test_gradients_of_a_side_not_taken(expression: str, where: str) -> None:
    assert leak(*at(expression)) == where


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("x + 1", "x * 3", True),
        ("x", "y", True),
        ("x.clone()", "torch.relu(x)", True),
        ("x", "z", False),
        ("x", "x.sum()", False),
        ("x", "1", False),
        ("x", "x > 0", False),
        ("g.a + 1", "g.a", True),
        ("g.a", "g.b", False),
    ],
)
def test_alike(a: str, b: str, same: bool) -> None:
    facts, node = at(f"({a}, {b})")
    assert isinstance(node, ast.Tuple)
    assert (alike(facts, *node.elts).blocker is None) is same


def test_what_is_not_proven_is_named() -> None:
    facts, node = at("(g.a + 1, g.a)")
    assert isinstance(node, ast.Tuple)
    assert alike(facts, *node.elts).differences


def test_observed() -> None:
    inside = "try:\n        raise ValueError\n    except ValueError:\n        pass"
    facts = within(inside, "raise ValueError")
    assert observed(facts, facts.statement)
    cleanup = "try:\n        pass\n    finally:\n        raise ValueError"
    facts = within(cleanup, "raise ValueError")
    assert not observed(facts, facts.statement)


def test_alive() -> None:
    facts = within("a = x\n    b = a\n    return b", "a = x")
    assert alive(facts, "a", facts.statement)
    facts = within("a = x\n    a = y\n    return y", "a = y")
    assert not alive(facts, "a", facts.statement)
    facts = within("for _ in x:\n        y = z\n        z = x\n    return 1", "z = x")
    assert alive(facts, "z", facts.statement)
    facts = within("if x:\n        a = y\n    a = x\n    return a", "a = y")
    assert not alive(facts, "a", facts.statement)


@pytest.mark.parametrize(
    ("text", "live"),
    [
        ("a = b\nc = a", "b"),
        ("a += b", "a b"),
        ("x: int\ny = x", "int x"),
        ("if x:\n    a = 1\nb = a", "a x"),
        ("if x:\n    a = 1\nelse:\n    a = 2\nb = a", "x"),
        ("if x and (a := y):\n    pass\nb = a", "a x y"),
        ("for i in x:\n    a = b\n    b = i", "b x"),
        ("for i in x:\n    if i: break\n    a = 1\nb = a", "a x"),
        ("for i in x:\n    if i: continue\n    a = i\nelse:\n    a = 1\nb = a", "x"),
        ("while a:\n    a = f(b)\nelse:\n    c = d", "a b d f"),
        ("for i in x:\n    for j in i:\n        c = d\n        d = e\n        e = j", "d e x"),
        ("try:\n    a = f()\n    b = a\nexcept E as e:\n    g(a, e)", "E a f g"),
        ("try:\n    return a\nfinally:\n    b = c", "a c"),
        ("try:\n    a = f()\nfinally:\n    g(a)", "a f g"),
        ("with c as d:\n    a = d\nb = a", "a c"),
        ("match s:\n    case [p, *q] if p > r:\n        t = p\nu = t", "r s t"),
        ("del a", "a"),
        ("def g(p=a):\n    return b\nc = g", "a b"),
    ],
)
def test_names_that_may_be_read_before_they_are_bound(text: str, live: str) -> None:
    (function,) = ast.parse(f"def f():\n{textwrap.indent(text, '    ')}").body
    assert isinstance(function, ast.FunctionDef)
    assert " ".join(sorted(live_into(function.body))) == live


def test_escapes_and_changes() -> None:
    facts = within("a = x + 1\n    return a * 2", "a = x + 1")
    assert not escapes(facts, "a")
    assert escapes(within("a = x + 1\n    return a", "a = x + 1"), "a")
    assert not changed_in_place(facts, "a")
    assert changed_in_place(within("a = x + 1\n    a.add_(1)", "a = x + 1"), "a")
    assert changed_in_place(within("a = x + 1\n    a[0] = 1", "a = x + 1"), "a")


def test_names() -> None:
    tree = ast.parse("a = b\nfor c in d: e += 1\ndef g(h): return i\n")
    assert writes(*tree.body) == {"a", "c", "e", "g"}
    assert {"b", "d", "e", "i"} <= reads(*tree.body)
    facts = within("condition = x\n    return condition", "condition = x")
    assert fresh(facts, "condition") == "condition_2"
    assert fresh(facts, "other") == "other"


@pytest.mark.parametrize(
    ("expression", "operands"),
    [
        ("x / y", ["y"]),
        ("x.sqrt()", ["x"]),
        ("torch.log(x + 1)", ["x + 1"]),
        ("x ** -0.5", ["x"]),
        ("2 ** x", ["x"]),
        ("x / y.sqrt()", ["y", "y.sqrt()"]),
        ("torch.div(x, y)", ["y"]),
        ("x * y", []),
        ("x / 2", []),
        ("x ** 2", []),
        ("torch.div(x, y, rounding_mode='floor')", []),
    ],
)
def test_operands_that_decide_whether_a_derivative_is_finite(expression: str, operands: list[str]) -> None:
    assert [ast.unparse(operand) for _, operand, _ in singular(*at(expression))] == operands


@pytest.mark.parametrize(
    ("expression", "before", "after"), [("x.sqrt()", "anywhere", "never"), ("x / y", "anywhere", "at infinity")]
)
def test_a_protected_operation_leaks_less(expression: str, before: str, after: str) -> None:
    facts, node = at(expression)
    protected = {n for n, _, _ in singular(facts, node)}
    assert leak(facts, node) == before
    assert leak(facts, node, protected) == after


def test_reads_in_loops_and_inner_functions_keep_a_name_alive() -> None:
    facts = within("a = x\n    def g():\n        return a\n    return g", "a = x")
    assert alive(facts, "a", facts.statement)
    facts = within("for _ in x:\n        b = x\n    return 1", "b = x")
    assert not alive(facts, "b", facts.statement)
