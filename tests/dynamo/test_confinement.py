"""A mended text that is not the user's own reaches nothing while it is checked."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Checks

pytestmark = pytest.mark.torch

BEFORE = """

@torch.compile
def step(x):
    return x + 1

def example_inputs():
    return (torch.ones(2),)
"""
ATTEMPTS = {
    "socket": "import socket; socket.socket()",
    "unix socket": "import socket; socket.socket(socket.AF_UNIX)",
    "program": "import subprocess; subprocess.run(['true'])",
    "write": "open(OUTSIDE, 'w')",
    "append": "open(__file__, 'a')",
    "remove": "import os; os.remove(__file__)",
    "rename": "import os; os.rename(__file__, OUTSIDE)",
    "folder": "import os; os.mkdir(OUTSIDE)",
    "what it is compared with": "import glob; kept = glob.glob(KEPT); assert kept; any(map(written, kept)) or stop()",
    "link": "import os; os.symlink(__file__, OUTSIDE)",
    "mode": "import os; os.chmod(__file__, 0)",
    "truncate": "import os; os.truncate(__file__, 0)",
    "kill": "import os; os.kill(os.getppid(), 0)",
    "trace": "import ctypes; assert ctypes.CDLL(None).ptrace(0, 0, 0, 0) == -1; raise PermissionError",
}
HELPERS = """
def written(path):
    try:
        open(path, "ab").close()
    except OSError:
        return False
    return True

def stop():
    raise PermissionError
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux confines a process without privileges")
@pytest.mark.parametrize("name", ATTEMPTS)
def test_what_reaches_out_is_stopped(checks: Checks, write: Callable[..., Path], tmp_path: Path, name: str) -> None:
    path = write(BEFORE)
    before = path.read_text(encoding="utf-8")
    outside = tmp_path / "outside"
    kept = os.path.join(tempfile.gettempdir(), "graphmend-*", "*")
    attempt = f"{HELPERS}OUTSIDE, KEPT = {str(outside)!r}, {kept!r}\ntry:\n    "
    attempt += "\n    ".join(ATTEMPTS[name].split("; "))
    text = f"{before}{attempt}\nexcept PermissionError:\n    pass\nelse:\n    raise SystemExit('it reached out')\n"
    report = checks(path, mended={str(path): text}, confined=True)
    assert report.after is not None
    assert report.after.problem is None, report.after.problem
    assert path.read_text(encoding="utf-8") == before
    assert not outside.exists()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux confines a process without privileges")
def test_a_check_works_within_the_walls(checks: Checks, write: Callable[..., Path]) -> None:
    path = write(BEFORE)
    after = path.read_text(encoding="utf-8").replace(
        "x + 1", "torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))"
    )
    report = checks(path, mended={str(path): after}, confined=True)
    assert report.after is not None
    (target,) = report.after.targets
    assert target.comparison is not None
    assert target.graphs == 1
