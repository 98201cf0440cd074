"""Code that does harm ends its own check with one clear line, and the next check works."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from graphmend.dynamo.report import Report
from graphmend.dynamo.requests import Request
from graphmend.dynamo.service import Service

from .conftest import Checks

pytestmark = [pytest.mark.torch, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")]

FINE = "@torch.compile\ndef f(x):\n    if x.sum() > 0:\n        return x\n    return -x\n"
HEAD = "import os, signal, sys, time\n"


@pytest.fixture(autouse=True)
def _the_next_check_works(checks: Checks, tmp_path: Path) -> Iterator[None]:
    """After whatever the test did, and in the same warm process where that is alive."""
    yield
    path = tmp_path / "next.py"
    path.write_text("import torch\n" + FINE)
    report = checks(path)
    assert report.problem is None
    assert [b.gb_id for b in report.breaks] == ["GB0170"]


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "ended by SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "ended by SIGSEGV"),
        ("os._exit(3)", "ended the process (exit status 3) while importing model.py"),
        ("sys.exit(4)", "calls sys.exit(4) at import"),
        ("raise ValueError('no')", "cannot be imported: ValueError: no (model.py:4)"),
        ("input()", "cannot be imported: EOFError"),
        ("import nowhere_to_be_found", "cannot be imported: ModuleNotFoundError"),
        ("def broken(:", "cannot be imported: SyntaxError"),
        ("x = [bytearray(10**8) for _ in range(10**4)]", "cannot be imported: MemoryError"),
        (
            "for n in range(3, 1024):\n    try: os.write(n, b'rubbish\\n')\n    except OSError: pass",
            "wrote into the check's own files",
        ),
        ("open('big', 'wb').truncate(1 << 31)", "File too large"),
        ("for _ in range(4000):\n    if os.fork() == 0: time.sleep(60)", "more than 256 processes at once"),
    ],
)
def test_ends_with_one_line(checks: Checks, write: Callable[..., Path], code: str, says: str) -> None:
    report = checks(write(HEAD + code + "\n" + FINE), memory=2 << 30, timeout=90.0)  # a loaded machine forks slowly
    assert report.problem is not None
    assert says in report.problem
    assert "\n" not in report.problem


@pytest.mark.parametrize("imports", ["from model import Net", "import model", "from model import *"])
def test_a_script_says_where_its_model_lies(checks: Checks, write: Callable[..., Path], imports: str) -> None:
    path = write("from torch import nn\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n")
    script = path.with_name("train.py")
    script.write_text(f"import torch\nfrom torch.nn import Linear\n{imports}\n")
    problem = checks(script).problem or ""
    assert problem.startswith("train.py has nothing to check: ")
    assert "; it has Net from " in problem
    assert problem.endswith(f"{path.name}`")


@pytest.mark.parametrize("raises", ["import nowhere_to_be_found", "raise ValueError('no such device')"])
def test_a_package_that_wants_what_is_not_here(checks: Checks, tmp_path: Path, raises: str) -> None:
    layers = tmp_path / "package" / "layers"
    layers.mkdir(parents=True)
    (tmp_path / "package" / "__init__.py").write_text(f"{raises}\n")
    (layers / "__init__.py").write_text("from .fine import f\n")
    (layers / "parts.py").write_text("SIZE = 4\n")
    (layers / "fine.py").write_text(f"import torch\nfrom .parts import SIZE\nfrom ..layers import parts\n{FINE}")
    report = checks(layers / "fine.py")
    assert report.problem is None
    assert [b.gb_id for b in report.breaks] == ["GB0170"]
    (layers / "parts.py").write_text("import absent_as_well\nSIZE = 4\n")
    report = checks(layers / "fine.py")
    assert report.problem is not None
    assert "No module named 'absent_as_well'" in report.problem


@pytest.mark.parametrize(
    "code",
    [
        "print(repr(sys.stdin.read()))",
        "for _ in range(1000): sys.stdout.write('x' * 10**6)",
        "sys.stdout = sys.stderr = None",
        "os.closerange(0, 300)",
        "if os.fork() == 0:\n    os.setsid(); time.sleep(60)",
        "for _ in range(20):\n    if os.fork() == 0: time.sleep(60)",
    ],
)
def test_does_no_harm(checks: Checks, write: Callable[..., Path], code: str) -> None:
    report = checks(write(HEAD + code + "\n" + FINE))
    assert report.problem is None
    assert len(report.breaks) == 1
    assert len(report.output) < 200_000


@pytest.mark.parametrize("code", ["while True: pass", "time.sleep(60)", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_takes_too_long(checks: Checks, write: Callable[..., Path], code: str) -> None:
    path = write(HEAD + code + "\n" + FINE)
    for patience in (0.7, 3.0, 12.0):  # a busy machine may need longer to get as far as the import
        problem = checks(path, timeout=patience).problem
        if problem is not None and "importing" in problem:
            break
    assert problem == "no answer in the time allowed, while importing model.py"


def test_a_search_whose_time_is_over_tells_what_was_tried(checks: Checks, write: Callable[..., Path]) -> None:
    body = """
class Net(torch.nn.Module):
    def forward(self, x):
        if x.dim() < 3:
            raise ValueError("secret: time comes second")
        while True:
            pass
"""
    found = checks(write(HEAD + body), timeout=4.0)
    said = str(found.problem or found.targets[0].problem)
    assert "no answer in the time allowed, while finding inputs for Net: Net()(" in said
    assert "did not end; " in said
    assert "secret" in said
    withheld = str(found.bare or found.targets[0].bare)
    assert "did not end; " in withheld
    assert "secret" not in withheld


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("while True: pass", "no answer in the time allowed, while"),
        ("os._exit(3)", "ended the process (exit status 3)"),
    ],
)
def test_costs_no_other_target_its_report(checks: Checks, write: Callable[..., Path], code: str, says: str) -> None:
    harmful = f"@torch.compile\ndef g(x):\n    {code}\n@torch.compile\ndef h(x):\n    return x\n"
    report = checks(write(HEAD + FINE + harmful), timeout=4.0)
    assert report.problem is None
    f, g, h = report.targets
    assert (f.status, len(f.breaks), g.status, h.status) == ("checked", 1, "failed", "failed")
    assert says in str(g.problem)
    assert h.problem == "h: not checked: the check ended with g"


def test_cancelled_at_once(checks: Checks, write: Callable[..., Path]) -> None:
    path = write(f"import os, time\nopen({str(write('', 'pid'))!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n")

    async def cancel() -> None:
        task = asyncio.create_task(checks.service.check(Request(str(path))))
        while not (path.parent / "pid").read_text().isdigit():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    checks.wait(cancel())
    pid = int((path.parent / "pid").read_text())
    deadline = time.monotonic() + 5
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}")


def test_checks_run_beside_each_other(checks: Checks, write: Callable[..., Path]) -> None:
    paths = [write(FINE, "one.py"), write("import time\ntime.sleep(60)", "hangs.py"), write(FINE, "two.py")]

    async def run() -> list[Report]:
        limits = (60.0, 1.0, 60.0)
        requests = (
            Request(str(path), interpreter=sys.executable, timeout=limit)
            for path, limit in zip(paths, limits, strict=True)
        )
        return await asyncio.gather(*(checks.service.check(request) for request in requests))

    one, hangs, two = checks.wait(run())
    assert len(one.breaks) == len(two.breaks) == 1
    assert "no answer in the time allowed" in str(hangs.problem)


def test_a_dead_parent_is_replaced(checks: Checks, write: Callable[..., Path]) -> None:
    path = write(FINE)
    assert checks(path).problem is None
    (worker,) = checks.service._workers.values()
    worker.kill()
    assert len(checks(path).breaks) == 1


def test_a_fresh_process_for_each_check(write: Callable[..., Path]) -> None:
    """As on systems without a sound fork."""
    pytest.importorskip("torch")
    fine, ends = write(FINE, "fine.py"), write("import os; os._exit(3)", "ends.py")

    async def run() -> list[Report]:
        service = Service(fork=False)
        requests = [Request(str(path), interpreter=sys.executable) for path in (fine, ends)]
        try:
            return await asyncio.gather(*(service.check(request) for request in requests))
        finally:
            await service.close()

    first, second = asyncio.run(run())
    assert len(first.breaks) == 1
    assert second.problem is not None
    assert "ended with status 3" in second.problem
