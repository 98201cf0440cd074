"""Numbers that a module keeps: counters under a test, what is logged, histories. They become 0-d tensors, which counts
on as the numbers did; what else the module does stays.
"""

from __future__ import annotations

import textwrap

import pytest
from judge import mend_text, torch

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.offers import mend

_HEAD = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.count = 0
        self.scale = 0.5
        self.logs = {}
        self.history = []

    def forward(self, x):
"""
_TAIL = """

net = torch.compile(Net())


def example_inputs():
    return [(torch.ones(3),)]
"""

COUNTED = "if x.sum() > 1:\n    self.count += 1\n    x = x * 2\nreturn x\n"
GREATEST = "top = x.max().item()\nif top > self.scale:\n    self.scale = top\nreturn x + 1\n"
LOGGED = "self.logs['sum'] = x.sum().item()\nreturn x + 1\n"
UPDATED = "self.logs.update({'sum': x.sum().item(), 'of': 3})\nreturn x + 1\n"
APPENDED = "self.history.append(x.sum().item())\nreturn x + len(self.history)\n"

RETURNED = "if x.sum() > 1:\n    self.count += 1\nreturn x, self.count\n"
RUN_OVER = "if x.sum() > 1:\n    self.count += 1\nfor _ in range(self.count):\n    x = x + 1\nreturn x\n"
OTHER_TYPE = "if x.sum() > 1:\n    self.count /= 2\nreturn x\n"
GREATEST_OF_ALL = "self.history.append(x.sum().item())\nreturn x / max(self.history)\n"
HANDED_ON = "self.history.append(x.sum().item())\nreturn x, self.history\n"
ASKED = "self.logs['sum'] = x.sum().item()\nassert isinstance(self.logs['sum'], float)\nreturn x\n"


def module(body: str) -> str:
    return _HEAD + textwrap.indent(body, " " * 8) + _TAIL


def made(text: str, *, compiled: bool = False) -> object:
    """A module of the class in a text, all of it run."""
    names: dict[str, object] = {}
    exec(compile(text.replace("net = torch.compile(Net())", "net = Net()"), "net.py", "exec"), names)
    net = names["net"]
    return torch.compile(net, backend="eager", fullgraph=True) if compiled else net


def state(net: object) -> object:
    def plain(value: object) -> object:
        if isinstance(value, dict):
            return {key: plain(v) for key, v in value.items()}
        if isinstance(value, list):
            return [plain(v) for v in value]
        return value.item() if isinstance(value, torch.Tensor) else value

    return [plain(getattr(net, name)) for name in ("count", "scale", "logs", "history")]


@pytest.mark.torch
@pytest.mark.parametrize("body", [COUNTED, GREATEST, LOGGED, UPDATED, APPENDED])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_module_counts_and_keeps_as_before(body: str, *, compiled: bool) -> None:
    mended = mend_text(module(body)).source.text
    assert mended != module(body)
    before, after = made(module(body)), made(mended, compiled=compiled)
    for x in (torch.ones(3), torch.zeros(3), torch.tensor([2.0, -1.0, 5.0])):
        assert torch.equal(before(x.clone()), after(x.clone()))  # type: ignore[operator]
        assert state(before) == state(after)


@pytest.mark.torch
@pytest.mark.parametrize("body", [COUNTED, GREATEST, LOGGED, UPDATED, APPENDED])
def test_that_a_tensor_is_kept_is_named(body: str) -> None:
    result = check(Source(module(body), "net.py"))
    fixes = [one for f in result.findings for one in mend(f, result.facts(f)) if isinstance(one, Fix)]
    kept = [d.says for fix in fixes for d in fix.differences if d.kind == "type"]
    assert any("self." in says and "0-d tensor" in says for says in kept)


@pytest.mark.torch
@pytest.mark.parametrize("body", [RETURNED, RUN_OVER, OTHER_TYPE, GREATEST_OF_ALL, HANDED_ON, ASKED])
def test_a_number_that_is_needed_stays_one(body: str) -> None:
    assert mend_text(module(body)).source.text == module(body)


def test_what_is_logged_is_what_it_was_then() -> None:
    text = module("total = x.sum()\nself.logs['sum'] = total.item()\ntotal += 1\nreturn total\n")
    assert "self.logs['sum'] = total.detach().clone()" in mend_text(text).source.text
