"""Whatever is composed of mendable pieces: mended once is mended for good, and plain Python answers as before."""

from __future__ import annotations

import contextlib
import io
import types
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from judge import close, mend_text, torch

TESTS = st.sampled_from(
    ["x.sum() > 0", "y.max() > 0.5", "not (x > 0).all()", "x.ndim == 2 and y.sum() > 1", "x.sum() > 5 or y.min() < 0"]
)
STATEMENTS = st.sampled_from(
    [
        "y = y * 2",
        "y = x + y  # sum",
        "z = y - 1",
        "x, y = y, x",
        "y = y / (1 + y.sum() ** 2)",
        "k = 2",
        "print('seen', y.sum())",
        "y = y * float(x.sum())",
        "y = y + x[x > 0].sum()",
        "# a remark\ny = -y",
    ]
)


def _indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


@st.composite
def _branch(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    text = f"if {draw(TESTS)}:\n{_indented(draw(inner))}"
    for test in draw(st.lists(TESTS, max_size=2)):
        text += f"elif {test}:\n{_indented(draw(inner))}"
    return text + (f"else:\n{_indented(draw(inner))}" if draw(st.booleans()) else "")


_EARLY = TESTS.map(lambda test: f"if {test}:\n    return y * 3")
_BLOCK = st.lists(STATEMENTS, min_size=1, max_size=3).map("\n".join)
_BODIES = st.lists(
    st.one_of(STATEMENTS, _branch(st.one_of(_BLOCK, _branch(_BLOCK))), _EARLY), min_size=2, max_size=4
).map("\n".join)

HEAD = """\
import torch as th


@th.compile
def case(x):
    y, z, k = x * 1, x + 1, 1
"""
TAIL = """\
    return y + z * k


def example_inputs():
    return [(th.ones(2, 3),)]
"""


def answers(text: str) -> list[Any]:
    """What a module's function gives, and prints, for positive and for negative numbers."""
    module = types.ModuleType("composed")
    exec(compile(text.replace("@th.compile\n", ""), "model.py", "exec"), module.__dict__)
    found: list[Any] = []
    for sign in (1, -1):
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            result = module.case(torch.tensor([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]]) * sign)
        found.append((result.double().flatten().tolist(), stream.getvalue()))
    return found


@pytest.mark.torch
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(_BODIES)
@example("y = y * 2\nif x.ndim == 2 and y.sum() > 1:\n    y = y * 2\nelif x.sum() > 0:\n    y = y * 2\n")
def test_composed(body: str) -> None:
    text = f"{HEAD}{_indented(body)}{TAIL}"
    mended = mend_text(text)
    after = mended.source.text
    assert "import torch\n" not in after
    assert "torch." not in after.replace("import torch as th", "")
    assert after.count("# sum") >= text.count("# sum"), after
    assert after.count("# a remark") >= text.count("# a remark"), after
    assert close(answers(after), answers(text)), after
    again = mend_text(after)
    assert again.source.text == after, again.source.text
