"""A mended text beside the original: what is equal, and each way in which it may differ."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from graphmend.dynamo.comparison import Comparison
from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import check

from .conftest import Checks

pytestmark = pytest.mark.torch

BEFORE = """
import logging
logger = logging.getLogger(__name__)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        logger.warning("size %d", x.shape[0])
        if x.sum() > 0:
            x = x * 2
        return x
"""
WHERE = ("        if x.sum() > 0:\n            x = x * 2\n", "        x = torch.where(x.sum() > 0, x * 2, x)\n")
LOG = '        logger.warning("size %d", x.shape[0])\n'


@pytest.fixture
def compare(checks: Checks, write: Callable[..., Path]) -> Callable[[str], tuple[Report, Comparison]]:
    def compare(after: str) -> tuple[Report, Comparison]:
        path = write(BEFORE)
        head = "import torch\nfrom torch import nn\n"
        report = checks(path, mended={str(path): head + after})
        assert report.after is not None
        (target,) = report.after.targets
        assert target.comparison is not None, target.problem
        return report, target.comparison

    return compare


Compare = Callable[[str], tuple[Report, Comparison]]


def test_equal(compare: Compare) -> None:
    report, found = compare(BEFORE.replace(*WHERE))
    assert found.equal
    assert (found.largest, found.gradients) == (0.0, 3 * found.runs)  # of two parameters and the input
    assert found.runs >= 3
    assert report.after is not None
    assert len(report.breaks) == 2
    assert len(report.after.breaks) == 1


def test_other_values(compare: Compare) -> None:
    _, found = compare(BEFORE.replace("x * 2", "x * 3"))
    assert any("result differs by up to" in line for line in found.differences)


def test_other_gradients(compare: Compare) -> None:
    _, found = compare(BEFORE.replace("x * 2", "x + x.detach()"))
    assert found.differences
    assert all("gradient of layer." in line or "gradient of input" in line for line in found.differences)


def test_other_text(compare: Compare) -> None:
    _, found = compare(BEFORE.replace("size", "shape"))
    assert any("prints 'shape 2' instead of 'size 2'" in line for line in found.differences)


def test_silenced(compare: Compare) -> None:
    guarded = LOG.replace("logger", "if not torch.compiler.is_compiling(): logger")
    _, found = compare(BEFORE.replace(LOG, guarded))
    assert found.silenced == ("size 2",)
    assert not found.differences


def test_raises(compare: Compare) -> None:
    _, found = compare(BEFORE.replace("x * 2", "x @ x.T @ torch.ones(7)"))
    assert any("raises RuntimeError" in line and "where the original returns" in line for line in found.differences)


OBJECTS = """
import warnings
from collections import UserDict
from dataclasses import dataclass

@dataclass
class Output:
    logits: torch.Tensor
    cache: object = None

class Cache:
    def __init__(self, keys):
        self.keys = [keys]

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        x = self.layer(x)
        if x.sum() > 0:
            x = x * 2
        warnings.warn(f"a cache of {x.shape[0]}")
        return Output(x, UserDict(inner=Cache(x + 1)))
"""


def test_objects_are_compared_by_what_they_hold(checks: Checks, write: Callable[..., Path]) -> None:
    """Results that torch knows no structure of; and a warning names the line that it came from, which moved."""
    path = write(OBJECTS)
    head = "import torch\nfrom torch import nn\n"

    def compared(after: str) -> Comparison:
        report = checks(path, mended={str(path): head + after})
        assert report.after is not None
        (target,) = report.after.targets
        assert target.comparison is not None
        return target.comparison

    found = compared(OBJECTS.replace(*WHERE))
    assert found.differences == ()
    assert (found.equal, found.largest) == (True, 0.0)
    assert any(
        "result.cache['inner'].keys[0] differs" in line
        for line in compared(OBJECTS.replace("x + 1", "x + 1.5")).differences
    )
    assert any("structure" in line for line in compared(OBJECTS.replace("Cache(x + 1)", "x + 1")).differences)


@pytest.mark.skipif(os.name == "nt", reason="uses a shell script as interpreter")
def test_the_runtime_is_there_where_graphmend_is_not_installed(tmp_path: Path, write: Callable[..., Path]) -> None:
    torch = pytest.importorskip("torch")
    packages = Path(torch.__file__).parents[1]
    python = tmp_path / "python"
    # without `site`, the link to an editable graphmend is not read; the folder of torch is put on the path by hand
    python.write_text(f'#!/bin/sh\nPYTHONPATH={packages} exec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    text = "def f(x):\n    return x\n"
    path = write(text)
    mended = "import graphmend.runtime\nassert callable(graphmend.runtime.emit)\n" + text
    report = check(Request(str(path), ("f",), interpreter=str(python), mended={str(path): mended}))
    assert report.problem is None
    assert report.after is not None
    assert report.after.problem is None
    assert report.after.breaks == ()


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit")
def test_what_is_kept_may_be_larger_than_a_file_of_the_checked_code(tmp_path: Path) -> None:
    """A model of more than a gigabyte could not be compared; what its own code writes is limited before and after."""
    program = f"""
import resource, torch
from graphmend.dynamo.worker.comparison import compare
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
compare.keep({str(tmp_path)!r}, "Net", {{"weight": torch.ones(10_000)}})
assert compare.kept({str(tmp_path)!r}, "Net")["weight"].sum() == 10_000
try:
    with open({str(tmp_path / "file")!r}, "wb") as file:
        file.write(bytes(10_000))
except OSError:
    print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("refused\n", 0), done.stderr


def test_the_next_answer_of_a_model_is_compared_with_the_same_run(checks: Checks, write: Callable[..., Path]) -> None:
    path = write(BEFORE)
    stages: list[str] = []

    def judged(after: str) -> list[str]:
        stages.clear()
        text = "import torch\nfrom torch import nn\n" + after
        request = Request(str(path), interpreter=sys.executable, mended={str(path): text}, unproven=True, timeout=30.0)
        report = checks.wait(checks.service.check(request, stages.append))
        assert report.breaks
        (target,) = report.after.targets
        assert target.comparison is not None, target.problem
        return list(target.comparison.differences)

    assert not judged(BEFORE.replace(*WHERE))
    assert stages.count("compiling Net") == 2
    assert judged(BEFORE.replace("x * 2", "x * 3"))
    assert stages.count("compiling Net") == 1
    path.write_text(path.read_text(encoding="utf-8").replace("x * 2", "x * 3"), encoding="utf-8")
    assert not judged(BEFORE.replace("x * 2", "x * 3"))
    assert stages.count("compiling Net") == 2
    path.with_name("numbers.json").write_text("[3]", encoding="utf-8")  # which the program may read
    assert not judged(BEFORE.replace("x * 2", "x * 3"))
    assert stages.count("compiling Net") == 2
