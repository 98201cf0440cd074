"""`torch.cond` is shown where computing both sides is no choice, and never applied; followed by hand it holds."""

from __future__ import annotations

import pytest
from judge import close, edited, mend_text, nested, run, torch

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.mend import mend

TEXT = """\
import torch

torch.manual_seed(0)
large, small = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.large = large
        self.small = small

    def forward(self, h):
        if h.abs().mean() > 0.3:
            h = self.large(h)
        else:
            h = self.small(h)
        return h.relu()


net = Net()


@torch.compile
def case(x):
    return net(x)


def example_inputs():
    return [(torch.ones(4, 4),)]
"""


def shown(text: str) -> tuple[Source, list[Fix]]:
    source = Source(text, "model.py")
    result = check(source)
    answers = [a for f in result.findings for a in mend(f, result.facts(f)) if isinstance(a, Fix)]
    return source, [a for a in answers if a.rewrite == "cond"]


@pytest.mark.torch
def test_the_pattern_holds_where_it_is_legal() -> None:
    source, (fix,) = shown(TEXT)
    assert fix.applicability == "display"
    after = edited(fix, source)
    torch._dynamo.reset()
    compiled = torch.compile(nested(after), backend="eager")
    for x in (torch.ones(4, 4), torch.zeros(4, 4)):
        assert close(run(compiled, (x,)), run(nested(TEXT), (x,)))


def test_it_is_never_applied() -> None:
    mended = mend_text(TEXT)
    assert "cond" not in {applied.fix.rewrite for applied in mended.applied}
    assert "torch.cond" not in mended.source.text


@pytest.mark.parametrize("side", ["h = h * 2", "self.large(h)", "print(h)", "h += self.large(h)"])
def test_it_is_not_shown_for_other_sides(side: str) -> None:
    assert not shown(TEXT.replace("h = self.large(h)", side).replace("h = self.small(h)", "h = h * 3"))[1]
