"""Layer drop: a drawn number that cannot fall into the range is not asked for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from asked import offered  # noqa: E402
from judge import mend_text, nested, unbroken  # noqa: E402

pytestmark = pytest.mark.torch

HEAD = """import random
import numpy as np
import torch


@torch.compile
def case(x, p: float, training: bool = True):
"""


def program(*lines: str) -> str:
    return HEAD + "".join(f"    {line}\n" for line in lines) + "    return x\n"


TESTS = {
    "name": ("u = torch.rand([])", "if u < p:", "    x = x + 1"),
    "behind": ("u = torch.rand([])", "if training and u < p:", "    x = x + 1"),
    "at_least": ("u = torch.rand(())", "if u >= p:", "    x = x + 1"),
    "more": ("u = torch.rand(1)", "if u > p:", "    x = x + 1"),
    "at_most": ("u = torch.rand(1)", "if u <= p:", "    x = x + 1"),
    "turned": ("u = torch.rand([])", "if p > u:", "    x = x + 1"),
    "drawn_inside": ("if torch.rand([]) < p:", "    x = x + 1"),
    "drawn_behind": ("if training and torch.rand([]) < p:", "    x = x + 1"),
    "number": ("u = torch.rand(1).item()", "if training and u < p:", "    x = x + 1"),
    "number_in_a_loop": (
        "for _ in range(3):",
        "    u = torch.rand(1).item()",
        "    if u < p:",
        "        continue",
        "    x = x + 1",
    ),
    "item_inside": ("if torch.rand(1).item() < p:", "    x = x + 1"),
    "not": ("u = torch.rand([])", "if not (training and u < p) or x.sum() > 9:", "    x = x + 1"),
    "named": ("u = torch.rand([])", "skip = training and u < p", "if not skip:", "    x = x + 1"),
    "chosen": ("u = torch.rand([])", "x = x + 1 if u < p else x - 1"),
}


@pytest.mark.parametrize("lines", TESTS.values(), ids=TESTS)
@pytest.mark.parametrize("p", [0.0, -1.0, 0.5, 1.0, float("nan")])
def test_it_is_the_same_and_draws_the_same(lines: tuple[str, ...], p: float) -> None:
    numpy = pytest.importorskip("numpy")
    mended = mend_text(program(*lines), unsafe=False)
    assert {a.fix.rewrite for a in mended.applied} == {"range_guard"}
    assert not mend_text(mended.source.text, unsafe=False).changed
    answers = []
    for text in (program(*lines), mended.source.text):
        torch.manual_seed(3), numpy.random.seed(3)
        given = [nested(text)(torch.ones(2), p) for _ in range(5)]
        answers.append(([g.tolist() for g in given], torch.get_rng_state().tolist(), numpy.random.rand()))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", [n for n in TESTS if n != "not"])
def test_nothing_breaks_where_the_range_is_empty(name: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(nested(mend_text(program(*TESTS[name]), unsafe=False).source.text), backend="eager")
    with unbroken():
        compiled(torch.ones(2), -1.0)


#: those in which torch draws; where a sampled number is taken out of a tensor the graph breaks all the same
DRAWN_BY_TORCH = [n for n in TESTS if n != "item_inside"]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", DRAWN_BY_TORCH)
def test_a_graph_draws_what_plain_python_does(name: str, training: bool, backend: str) -> None:
    text = mend_text(program(*TESTS[name]), unsafe=False).source.text
    assert_drawn_as_before(program(*TESTS[name]), text, backend, training)


@pytest.mark.build
def test_inductor_draws_it_too() -> None:
    text = mend_text(program(*TESTS["behind"]), unsafe=False).source.text
    with torch._inductor.config.patch(fallback_random=True):
        assert_drawn_as_before(program(*TESTS["behind"]), text, "inductor", True)
    torch._dynamo.reset()
    torch.manual_seed(3)
    torch.compile(nested(text), backend="inductor")(torch.ones(2), 0.0)
    drawn = torch.get_rng_state()
    torch.manual_seed(3)
    torch.compile(nested(text.replace("assert u >= 0", "assert True")), backend="inductor")(torch.ones(2), 0.0)
    assert not torch.equal(torch.get_rng_state(), drawn), "the assertion is no longer needed"


def assert_drawn_as_before(before: str, after: str, backend: str, training: bool) -> None:
    """Compiled with an empty range, mended code leaves the generator where plain Python leaves it."""
    torch._dynamo.reset()
    states = []
    for function in (nested(before), torch.compile(nested(after), backend=backend)):
        torch.manual_seed(3)
        result = function(torch.ones(2, requires_grad=True), 0.0, training)
        states.append((result.tolist(), torch.get_rng_state().tolist()))
    assert states[0] == states[1], after


def test_without_a_line_for_the_assertion_the_difference_is_named() -> None:
    text = program("u = torch.rand([]); v = 1", "if u < p:", "    x = x + v")
    assert not mend_text(text, unsafe=False).changed
    guard = next(f for f in offered(text) if f.rewrite == "range_guard")
    assert [d.kind for d in guard.differences] == ["random"]


def test_a_number_that_something_else_reads_is_not_asserted() -> None:
    text = program("u = torch.rand([])", "if u < p:", "    x = x + 1", "x = x + u")
    after = mend_text(text, unsafe=False).source.text
    assert "p > 0 and u < p" in after
    assert "assert" not in after


@pytest.mark.parametrize(
    "lines",
    [
        ("u = torch.rand(3)", "if (u < p).all():", "    x = x + 1"),
        ("u = torch.rand(3)", "if u < p:", "    x = x + 1"),
        ("u = torch.randn([])", "if u < p:", "    x = x + 1"),
        ("u = torch.rand([])", "u -= 1", "if u < p:", "    x = x + 1"),
        ("u = torch.rand([])", "if u < 0.5:", "    x = x + 1"),
        ("u = torch.rand([])", "if u < x.sum():", "    x = x + 1"),
        ("if x.sum() > 0 and torch.rand([]) < p:", "    x = x + 1"),
        ("u = random.uniform(-1, 1)", "if u < p:", "    x = x + 1"),
        ("u = torch.rand([])", "x = x + (u < p)"),
    ],
)
def test_other_numbers_are_not_guarded(lines: tuple[str, ...]) -> None:
    assert "range_guard" not in [a.fix.rewrite for a in mend_text(program(*lines)).applied]
