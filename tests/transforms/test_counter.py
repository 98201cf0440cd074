"""Counting in a buffer of the module."""

from __future__ import annotations

import pytest
from judge import mend_text, nested, run, torch

TEXT = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0
        self.total = 0.5  # so far

    def forward(self, x):
        self.seen += (x > 0).sum().item()
        self.total += x.mean().item()
        return x * 2


net = Net()


@torch.compile
def case(x):
    return net(x), x + net.seen, x * net.total


def example_inputs():
    return [(torch.ones(3),)]
"""


@pytest.mark.torch
def test_counts_stay_what_they_were() -> None:
    mended = mend_text(TEXT)
    assert "register_buffer" in mended.source.text
    torch._dynamo.reset()
    plain, compiled = nested(TEXT), torch.compile(nested(mended.source.text), backend="aot_eager")
    for x in (torch.ones(3), torch.tensor([-1.0, 2.0, 0.25])):
        want, got = run(plain, (x,))[0], run(compiled, (x,))[0]
        assert want[0] == got[0]
        assert want[1] == got[1]
        assert want[2][3] == pytest.approx(got[2][3], rel=1e-6)


def test_a_class_between_is_a_module_too() -> None:
    between = TEXT.replace("class Net(torch.nn.Module)", "class Base(torch.nn.Module):\n    pass\n\n\nclass Net(Base)")
    assert "register_buffer" in mend_text(between).source.text


@pytest.mark.torch
def test_the_state_of_the_module_keeps_its_names() -> None:
    names: dict[str, type] = {"__name__": "counted"}
    exec(mend_text(TEXT).source.text.replace("@torch.compile\n", ""), names)
    assert not names["Net"]().state_dict()


@pytest.mark.parametrize(
    "change",
    [
        ("        self.seen = 0\n        self.total = 0.5", "        pass"),
        ("        self.seen = 0\n        self.total = 0.5", "        self.seen = self.total = None"),
        ("        return x * 2", "        return x * 2\n\n    def clear(self):\n        self.seen = self.total = 0"),
        ("torch.nn.Module", "dict"),
        ("        self.seen += (x > 0)", "        before = self.seen, self.total\n        self.seen += (x > 0)"),
    ],
)
def test_refusal(change: tuple[str, str]) -> None:
    assert "register_buffer" not in mend_text(TEXT.replace(*change)).source.text
