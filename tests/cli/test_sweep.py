"""`graphmend sweep` over real targets on this machine: those that run, and those that raise, hang, grow or die."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmend.cli.main import main
from graphmend.cli.sweeping import local_pool, one_target
from graphmend.cli.sweeping.task import Options, Task

pytestmark = pytest.mark.torch

HEAD = "import os\nimport torch\nfrom torch import nn\n\ndef example_inputs():\n    return [(torch.ones(3),)]\n\n"
FORWARD = {
    "Good": "return x + 1",
    "Broken": 'x = x + 1\n        print("here")\n        return x * 2',
    "Raises": 'raise ValueError("never works")',
    "Hangs": "while True:\n            pass",
    "Grows": "return x + len(bytearray(20_000_000_000))",
    "Dies": "os.kill(os.getpid(), 9)",
    "NeedsGpu": "return x.cuda()",
}


def model(folder: Path, *names: str, before: str = "") -> None:
    for name in names:
        text = f"{HEAD}{before}\nclass {name}(nn.Module):\n    def forward(self, x):\n        {FORWARD[name]}\n"
        (folder / f"{name.lower()}.py").write_text(text)


def sweep(*words: str) -> int:
    return main(["sweep", "--device", "cpu", "--python", sys.executable, "-o", "out.jsonl", *words])


def lines(folder: Path) -> dict[str, dict[str, Any]]:
    found = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    return {line["target"]: line for line in found}


def test_what_is_compiled_anew_is_on_the_line(folder: Path) -> None:
    (folder / "sizes.py").write_text(
        "import torch\n\n\n@torch.compile\ndef f(x):\n    return x * 2\n\n\n"
        "def example_inputs():\n    return [(torch.ones(n),) for n in (2, 3, 4)]\n"
    )
    sweep("sizes.py")
    (line,) = lines(folder).values()
    assert [model["compilations"] for model in line["models"]] == [2]
    (again,) = line["report"]["targets"][0]["recompiles"]
    assert (again["filename"], again["row"], again["subject"]) == ("sizes.py", 5, "x")


def test_what_was_printed_is_no_part_of_a_report(folder: Path) -> None:
    model(folder, "Broken")
    sweep("broken.py")
    (line,) = lines(folder).values()
    assert line["outcome"] == "mended"
    assert not line["report"]["output"]
    assert not line["report"]["after"]["output"]


def test_each_target_has_its_line_whatever_it_does(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model(folder, *FORWARD)
    (folder / "absent.py").write_text("import torch\nimport not_installed\n" + HEAD + "class A(nn.Module):\n"
                                      "    def forward(self, x):\n        return x\n")  # fmt: skip
    (folder / "broken_text.py").write_text("import torch\ndef f(:\n")
    assert sweep(".", "--timeout", "10", "--memory", "4G", "--jobs", "2") == 1
    found = lines(folder)
    assert {target: (line["outcome"], line["reason"]) for target, line in found.items()} == {
        "good.py:Good": ("one-graph", None),
        "broken.py:Broken": ("mended", None),
        "raises.py:Raises": ("failed", "raises"),
        "hangs.py:Hangs": ("failed", "timeout"),
        "grows.py:Grows": ("failed", "memory"),
        "dies.py:Dies": ("failed", "died"),
        "needsgpu.py:NeedsGpu": ("failed", "gpu"),
        "absent.py:A": ("failed", "import"),
        "broken_text.py": ("failed", "import"),
    }
    assert all((line["problem"] is None) == (line["outcome"] in ("one-graph", "mended")) for line in found.values())
    (broken,) = found["broken.py:Broken"]["models"]
    assert (broken["breaks"], broken["breaks_mended"], broken["graphs"], broken["graphs_mended"]) == (1, 0, 2, 1)
    assert found["broken.py:Broken"]["mends"] == {"made": 1, "filenames": ["broken.py"], "problem": None}
    assert found["broken.py:Broken"]["report"]["targets"][0]["breaks"][0]["filename"] == "broken.py"
    assert str(folder) not in (folder / "out.jsonl").read_text()
    took = found["broken.py:Broken"]["run"]
    assert took["seconds"] > 0
    if sys.platform == "linux":
        assert took["cpu_seconds"] > 0
        assert took["memory"] > 50_000_000
        assert found["hangs.py:Hangs"]["run"]["cpu_seconds"] > 1
    assert "9 targets: 1 one-graph, 1 mended, 7 failed" in capsys.readouterr().out
    assert "needs a GPU" in (folder / "out.jsonl.html").read_text()

    # what has a line is not run again, and a new target is
    before = (folder / "out.jsonl").read_text()
    model(folder, "Good", before="# changed")
    (folder / "more.py").write_text((folder / "good.py").read_text().replace("Good", "More"))
    assert sweep(".", "--jobs", "1") == 1
    now = (folder / "out.jsonl").read_text()
    assert now.startswith(before)
    assert [json.loads(line)["target"] for line in now[len(before) :].splitlines()] == ["more.py:More"]

    # asked for by name, one is run again; with other options, results are not mixed
    assert sweep("good.py", "--again", "--jobs", "1") == 1
    assert (folder / "out.jsonl").read_text().count('{"target":"good.py:Good"') == 2
    capsys.readouterr()
    assert sweep("good.py", "--unsafe-fixes") == 2
    assert "results with another unsafe" in capsys.readouterr().err


def test_a_package_of_others_is_mended_where_targets_reach_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = folder / "elsewhere" / "helpers"
    package.mkdir(parents=True)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    (package / "__init__.py").write_text("")
    (package / "steps.py").write_text(
        'import torch\n\ndef step(x: torch.Tensor) -> torch.Tensor:\n    print("here")\n    return x * 2\n'
    )
    (folder / "models").mkdir()
    (folder / "models" / "net.py").write_text(
        "from helpers.steps import step\n" + HEAD + "class Net(nn.Module):\n    def forward(self, x):\n"
        "        return step(x) + 1\n"
    )
    options = Options(device="cpu", python=sys.executable)
    task = Task("models/net.py", False, "Net", str(folder), (), options)
    try:
        plain, mended = (
            one_target.run(task._replace(options=options._replace(packages=p))) for p in ((), ("helpers",))
        )
    finally:
        one_target.close()
    assert (plain["outcome"], plain["mends"]["filenames"]) == ("breaks", [])
    assert mended["outcome"] == "mended"
    assert mended["mends"]["filenames"] == ["elsewhere/helpers/steps.py"]


def test_a_job_that_dies_is_replaced_and_takes_no_other_target_along(folder: Path) -> None:
    """The target's process is not the job's: here the job itself is ended, from outside, as a full machine would."""
    model(folder, "Good", "Broken", "Hangs")
    options = Options(device="cpu", python=sys.executable)
    tasks = [Task(f"{name.lower()}.py", False, name, str(folder), (), options) for name in ("Hangs", "Good", "Broken")]
    tasks[0] = tasks[0]._replace(options=options._replace(timeout=5))
    found = {}
    running = local_pool.run_all(tasks, 2)
    for line in running:
        found[line["target"]] = (line["outcome"], line["reason"])
        if len(found) == 2:
            for process in multiprocessing.active_children():
                os.kill(process.pid or 0, signal.SIGKILL)
    assert found["hangs.py:Hangs"] == ("failed", "timeout")  # begun again in a new process
    assert found["good.py:Good"] == ("one-graph", None)
    assert found["broken.py:Broken"] == ("mended", None)
    assert not multiprocessing.active_children()


def test_mending_that_takes_too_long_keeps_the_plain_result(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model(folder, "Broken")

    def slow(*_: object) -> None:
        raise one_target.TooLong("mending what it reaches took longer than 120 seconds")

    monkeypatch.setattr(one_target, "_mended_text", slow)
    try:
        line = one_target.run(
            Task("broken.py", False, "Broken", str(folder), (), Options(device="cpu", python=sys.executable))
        )
    finally:
        one_target.close()
    assert (line["outcome"], line["models"][0]["breaks"]) == ("breaks", 1)
    assert line["problem"] == line["mends"]["problem"] == "mending what it reaches took longer than 120 seconds"
    assert line["mends"]["made"] == 0


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def started_by(folder: Path) -> list[str]:
    """Command lines of other processes that work in a folder (Linux)."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if int(process.name) != os.getpid() and os.readlink(process / "cwd") == str(folder):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def _heeds_interrupts() -> None:
    """What is started in the background ignores Ctrl-C, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_what_is_there_is_kept_when_the_sweep_is_ended(folder: Path, number: int, status: int) -> None:
    model(folder, "Good", "Hangs")
    command = [sys.executable, "-m", "graphmend", "sweep", ".", "--device", "cpu", "--python", sys.executable]
    command += ["--jobs", "1", "-o", "out.jsonl", "--timeout", "300"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_heeds_interrupts
    )
    wait_for(lambda: (folder / "out.jsonl").exists() and (folder / "out.jsonl").read_text().count("\n") == 1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert list(lines(folder)) == ["good.py:Good"]
    if number != signal.SIGKILL:
        assert "the 1 result in out.jsonl is kept" in errors
    wait_for(lambda: not started_by(folder))
    model(folder, "Broken")
    assert sweep("good.py", "broken.py", "--jobs", "1") == 0  # no lock is left behind
    assert list(lines(folder)) == ["good.py:Good", "broken.py:Broken"]
