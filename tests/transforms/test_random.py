"""Draws that a mend leaves out, or that nothing reads any more, are a difference that it names."""

from __future__ import annotations

import pytest
from asked import offered
from judge import mend_text, nested, torch

from graphmend.transforms.mend import Mended

pytestmark = pytest.mark.torch


def program(*lines: str) -> str:
    head = "import torch\nimport graphmend.runtime\n\n\n@torch.compile\ndef case(x):\n"
    return head + "".join(f"    {line}\n" for line in (*lines, "return x"))


def kinds(mended: Mended) -> set[str]:
    return {d.kind for applied in mended.applied for d in applied.fix.differences}


def drawn_as_before(before: str, after: str, backend: str) -> bool:
    torch._dynamo.reset()
    states = []
    for function in (nested(before), torch.compile(nested(after), backend=backend)):
        torch.manual_seed(3)
        function(torch.ones(2))
        states.append(torch.get_rng_state().tolist())
    return bool(states[0] == states[1])


#: what is read by nothing behind the break alone
FORGOTTEN = {
    "number": ("s = torch.rand([]).item()", "t = s * 2"),
    "name": ("u = torch.rand([])", "v = u * 2", "s = v.item()", "t = s * 2"),
    "store": ("u = torch.rand(3)", "m = u > 0.5", "if m.any():", "    u[m] = 1.0"),
    "branch": ("u = torch.rand([])", "y = 1.5", "if u < 0.5:", "    y = torch.ones(())", "z = y"),
}


@pytest.mark.parametrize("lines", FORGOTTEN.values(), ids=FORGOTTEN)
def test_what_nothing_reads_any_more_is_named(lines: tuple[str, ...]) -> None:
    text = program(*lines)
    assert not mend_text(text, unsafe=False).changed
    mended = mend_text(text)
    assert not mended.changed or "random" in kinds(mended)


KEPT = {
    "number": ("s = torch.rand(3).max().item()", "x = torch.full((2,), s)"),
    "asserted": ("u = torch.rand([])", "assert u.item() < 2"),
    "branch": ("u = torch.rand([])", "y = x * 2", "if u < 0.5:", "    y = x * 3", "x = y"),
    "printed": ("u = torch.rand([])", "print(u > 2, x.shape)"),
    "same": ("y = graphmend.runtime.select(torch.rand([]) < 0.5, lambda: x, lambda: x)", "x = y + 1"),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", KEPT)
def test_what_is_read_is_drawn(name: str, backend: str) -> None:
    text = program(*KEPT[name])
    after = mend_text(text).source.text
    assert name == "same" or after != text
    assert drawn_as_before(text, after, backend), after


@pytest.mark.parametrize("lines", [("print(torch.rand(2))",), ("u = torch.rand(2)", "print('u', u)")])
def test_left_out_draws_are_named(lines: tuple[str, ...]) -> None:
    skipping = [fix for fix in offered(program(*lines)) if fix.rewrite == "guard"]
    assert skipping
    assert all("random" in {d.kind for d in fix.differences} for fix in skipping)
