"""A record that compiled code would no longer keep is left out only where nothing that is traced reads it."""

from __future__ import annotations

import pytest

from graphmend.analysis.check import check
from graphmend.analysis.syntax.source import Source
from graphmend.transforms.fix import Fix
from graphmend.transforms.mend import mend

HEAD = """
import torch
from torch import Tensor

SEEN = []

class Meter:
    def __init__(self):
        self.total = 0.0
    def update(self, value):
        self.total += value

METER = Meter()

def latest():
    return SEEN[-1]
"""


def rewrites(text: str) -> set[str]:
    """The mends that are offered."""
    result = check(Source(text, "model.py"))
    answers = (answer for finding in result.findings for answer in mend(finding, result.facts(finding)))
    return {answer.rewrite for answer in answers if isinstance(answer, Fix)}


def program(*body: str, ends: str = "return x * 2", more: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in (*body, ends))
    return f"{HEAD}\n@torch.compile\ndef case(x: Tensor):\n{lines}{more}"


@pytest.mark.parametrize("keeps", ["SEEN.append(x.mean().item())", "METER.update(x.mean().item())"])
def test_a_record_that_is_only_kept(keeps: str) -> None:
    assert "guard" in rewrites(program(keeps))


@pytest.mark.parametrize(
    ("keeps", "ends"),
    [
        ("SEEN.append(x.mean().item())", "return x * len(SEEN)"),
        ("SEEN.append(x.mean().item())", "return x * latest()"),
        ("METER.update(x.mean().item())", "return x - METER.total"),
        ("METER.update(x.mean().item())", "return x if METER.total > 1 else -x"),
    ],
)
def test_a_record_that_is_read_there(keeps: str, ends: str) -> None:
    assert "guard" not in rewrites(program(keeps, ends=ends))


def test_a_record_that_a_caller_reads() -> None:
    keeps = "\ndef keep(x):\n    SEEN.append(x.mean().item())\n    return x\n"
    text = program(ends="return keep(x) * len(SEEN)", more=keeps)
    assert "guard" not in rewrites(text)
