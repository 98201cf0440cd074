"""A method is judged by its code where nothing in the file takes its place; that a subclass elsewhere may is named."""

from __future__ import annotations

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import DIFFERENCES, Fix
from graphmend.transforms.offers import mend

_NET = """\
import torch
from torch import nn


def noisy(self, x):
    self.count += 1
    return x * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def helper(self, x):
        return self.linear(x) * 2

    def around(self, x):
        return self.helper(x)

    def forward(self, x: torch.Tensor):
        if x.sum() > 0:
            y = self.helper(x)
        else:
            y = x - 1
        return y
"""


def offered(text: str, accept: frozenset[str] = frozenset()) -> list[Fix]:
    """The mends of the branch that may be made."""
    result = check(Source(text, "net.py"))
    finding = next(f for f in result.findings if f.code == "GM101")
    answers = mend(finding, result.facts(finding), accept)
    return [fix for fix in answers if isinstance(fix, Fix) and fix.applicability != "display"]


@pytest.mark.parametrize("method", ["helper", "around"])
def test_that_a_subclass_elsewhere_may_override_it_is_named(method: str) -> None:
    text = _NET.replace("y = self.helper", f"y = self.{method}")
    assert "callers" in {difference.kind for difference in offered(text)[0].differences}
    everything_else = frozenset(DIFFERENCES) - {"callers"}
    assert all(fix.applicability == "unsafe" for fix in offered(text, everything_else))
    assert offered(text, frozenset(DIFFERENCES))[0].applicability == "safe"


def test_a_layer_is_no_method_that_may_be_overridden() -> None:
    text = _NET.replace("y = self.helper", "y = self.linear")
    assert "callers" not in {difference.kind for difference in offered(text)[0].differences}


@pytest.mark.parametrize(
    "more",
    [
        "class Loud(Net):\n    helper = noisy\n",
        "class Loud(Net):\n    helper: object = noisy\n",
        "class Loud(Net):\n    from loud import helper\n",
        "class Loud(Net):\n    from loud import noisy as helper\n",
        "class Loud(Net):\n    if torch.cuda.is_available():\n        _, helper = 1, noisy\n",
        "class Loud(Net):\n    async def helper(self, x):\n        return x\n",
        "class Loud(Net):\n    class helper:\n        pass\n",
        "Net.helper = noisy\n",
        "setattr(Net, 'helper', noisy)\n",
        "Loud = type('Loud', (Net,), {'helper': noisy})\n",
        "Loud = type('Loud', (Net,), dict(helper=noisy))\n",
    ],
)
def test_what_takes_its_place_in_the_file_is_seen(more: str) -> None:
    assert not offered(f"{_NET}\n\n{more}")


def test_a_local_variable_of_the_name_takes_no_place() -> None:
    assert offered(f"{_NET}\n\ndef other(x):\n    helper = x + 1\n    return helper\n")
