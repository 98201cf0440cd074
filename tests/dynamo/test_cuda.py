"""The check on a CUDA device. Skipped where there is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Checks

torch = pytest.importorskip("torch")
no_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device, and there is none")
pytestmark = [pytest.mark.torch, no_device]

NET = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
    def forward(self, x):
        x = self.layer(x)
        if x.sum() > 0:
            x = x * 2
        return x
"""
MENDED = NET.replace("if x.sum() > 0:\n            x = x * 2", "x = torch.where(x.sum() > 0, x * 2, x)")


def test_auto_takes_cuda(checks: Checks, write: Callable[..., Path]) -> None:
    (target,) = checks(write(NET), device="auto").targets
    assert target.device.startswith("cuda")
    assert len(target.breaks) == 1


def test_before_and_after_with_times(checks: Checks, write: Callable[..., Path]) -> None:
    path = write(NET)
    mended = {str(path): "import torch\nfrom torch import nn\n" + MENDED}
    report = checks(path, device="cuda", mended=mended, bench=True, timeout=300.0)
    assert report.after is not None
    (before,), (after,) = report.targets, report.after.targets
    assert after.comparison is not None
    assert after.comparison.equal
    assert before.times is not None
    assert before.times.syncs
    assert after.times is not None
    assert after.times.syncs == 0


def test_checks_follow_each_other(checks: Checks, write: Callable[..., Path]) -> None:
    """The warm parent must not have touched CUDA, or the second fork could not use it."""
    path = write(NET)
    assert [checks(path, device="cuda").problem for _ in range(2)] == [None, None]


def test_what_runs_on_the_processor_only(checks: Checks, write: Callable[..., Path]) -> None:
    path = write("@torch.compile\ndef f(x):\n    return x + torch.ones(x.shape[-1])\n")
    (target,) = checks(path, device="auto").targets
    assert target.device == "cpu"
    assert any("cuda failed" in note for note in target.notes)
