"""Mends that are no finding's first, and so no other test of mended programs runs: each is chosen, made and run."""

from __future__ import annotations

import pytest
from judge import close, edited, nested, run, torch

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix, Refusal
from graphmend.transforms.mend import mend, mend_all

HEAD = "import torch\n\n\n"
EXAMPLES = "\n\ndef example_inputs():\n    return [(torch.rand(4, 4),)]\n"
PRINTS = f'{HEAD}@torch.compile\ndef case(x):\n    y = x + 1\n    print("y", y.sum())\n    return y * 2\n{EXAMPLES}'
DEVICE = (
    f'{HEAD}@torch.compile\ndef case(x):\n    with torch.device("cpu"):\n        y = torch.ones(4) + x\n    return y\n'
)
PICKS = f"{HEAD}@torch.compile\ndef case(x):\n    return x[x > 0.5] * 2\n{EXAMPLES}"
BUFFERS = (
    HEAD
    + """\
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.long, self.short = torch.ones(4) * 2, torch.ones(4)
        self.register_buffer("scale", torch.zeros(4), persistent=False)

    def forward(self, x: torch.Tensor):
        if x.sum() > 8:
            self.register_buffer("scale", self.long, persistent=False)
        else:
            self.register_buffer("scale", self.short, persistent=False)
        return x * self.scale


net = Net()


@torch.compile
def case(x: torch.Tensor):
    return net(x)
"""
    + EXAMPLES
)


def chosen(text: str, rewrite: str) -> str:
    source = Source(text, "model.py")
    result = check(source)
    fixes = [a for f in result.findings for a in mend(f, result.facts(f)) if isinstance(a, Fix)]
    return edited(next(fix for fix in fixes if fix.rewrite == rewrite), source)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("rewrite", "text"),
    [
        ("hop_print", PRINTS),
        ("device_context", f"{DEVICE}    return y\n{EXAMPLES}"),
        ("select_buffer", BUFFERS),
    ],
)
def test_it_holds(rewrite: str, text: str) -> None:
    after = chosen(text, rewrite)
    torch._dynamo.reset()
    compiled = torch.compile(nested(after), backend="eager")
    for x in (torch.ones(4, 4), torch.zeros(4, 4)):
        value, gradients, printed, logged = run(nested(text), (x,))
        if rewrite == "hop_print":
            printed = f"y {float((x + 1).sum())}\n"  # of one number it prints the number
        assert close(run(nested(after), (x,)), (value, gradients, printed, logged))
        assert close(run(compiled, (x,)), (value, gradients, printed, logged))


@pytest.mark.torch
def test_the_whole_graph() -> None:
    after = chosen(PICKS, "fullgraph")
    names: dict[str, object] = {"__name__": "whole"}
    torch._dynamo.reset()
    exec(compile(after.replace("fullgraph=True", "fullgraph=True, backend='eager'"), "model.py", "exec"), names)
    x = torch.tensor([0.0, 1.0, 2.0])
    assert close(run(names["case"], (x,)), run(nested(PICKS), (x,)))  # type: ignore[arg-type]


@pytest.mark.parametrize("between", ["self.set()", "print(self.set())", "key.strip(); self.set()"])
def test_what_is_chosen_from_stays_until_it_is_used(between: str) -> None:
    text = f"""\
import torch
class Net(torch.nn.Module):
    key = "a"
    def set(self):
        self.key = "b"
    @torch.compile
    def forward(self, x: torch.Tensor):
        key = self.key if x.sum() > 0 else "b"
        {between}
        return x * {{"a": 2, "b": 3}}[key]
"""
    found = check(Source(text))
    answers = [answer for finding in found.findings for answer in mend(finding, found.facts(finding))]
    assert any("may change what is chosen from" in one.reason for one in answers if isinstance(one, Refusal))
    assert not any(one.rewrite == "late_choice" for one in answers if isinstance(one, Fix))


@pytest.mark.torch
@pytest.mark.parametrize(
    "body",
    [
        "k = 'a' if x.sum() > 1 else 'b'\n    return x + 1 if k == mode else x * 2",
        "k = 'a' if x.sum() > 1 else 'b'\n    return (x - 1 if k != mode else x * 2) + 1",
        "k = (0, 1) if x.sum() > 1 else (1, 0)\n    y, (a, b) = x + 1, k\n    return y * a, x - b",
        "k = (0, 1) if x.sum() > 1 else (1, 0)\n    return x + 1, k",
        "k = 1 if x.sum() > 1 else 3\n    return x * k, mode and k",
    ],
)
def test_what_is_chosen_late_keeps_its_place(body: str) -> None:
    text = f"import torch\n@torch.compile\ndef case(x: torch.Tensor, mode: str):\n    {body}\n"
    after = mend_all(Source(text), unsafe=True).source.text
    before, mended = nested(text), nested(after)
    for sign in (1, -1):
        for mode in ("a", "b", "c", ""):
            x = sign * torch.rand(3) + sign
            assert str(mended(x, mode)) == str(before(x, mode))
