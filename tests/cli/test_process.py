"""The command as a process: what it imports, signals, pipes, parallel runs, the cache."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

MODEL = """\
import torch


@torch.compile
def f(x):
    y = x + 1
    print("y", y)
    return y * 2
"""


def graphmend(*arguments: str | Path, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "graphmend", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120, **options)


def imported(folder: Path, *arguments: str) -> set[str]:
    """The packages that a command imports."""
    code = "import sys; from graphmend.cli.main import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in done.stderr.split()}


@pytest.mark.parametrize("arguments", [("--version",), ("check", "--output-format", "json"), ("rule", "GM101")])
def test_nothing_heavy_is_imported(folder: Path, arguments: tuple[str, ...]) -> None:
    (folder / "m.py").write_text(MODEL)
    heavy = {"torch", "pygls", "lsprotocol", "libcst", "rich", "asyncio", "numpy"}
    assert imported(folder, *arguments) & heavy == set()


def test_rich_is_imported_for_people_only(folder: Path) -> None:
    (folder / "m.py").write_text(MODEL)
    assert "rich" in imported(folder, "check")
    assert "rich" not in imported(folder, "check", "--output-format", "concise")


def test_module_and_command_are_the_same(folder: Path) -> None:
    done = graphmend("--version", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("graphmend ")


def test_colour_only_where_asked_for(folder: Path) -> None:
    (folder / "m.py").write_text(MODEL)
    plain = graphmend("check", cwd=folder).stdout
    assert "\x1b[" not in plain
    coloured = graphmend("check", cwd=folder, env={**os.environ, "FORCE_COLOR": "1"}).stdout
    assert "\x1b[" in coloured


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_closed_pipe_is_quiet(folder: Path) -> None:
    (folder / "m.py").write_text(MODEL.replace('    print("y", y)\n', '    print("y", y)\n' * 200))
    command = f"'{sys.executable}' -m graphmend check --output-format json | head -c 10"
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    assert done.stderr == ""
    assert len(done.stdout) == 10


def _heed_interrupts() -> None:
    """As in a terminal: what a shell starts in the background ignores the signal, and so would the command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.many
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupt_leaves_whole_files_and_says_130(folder: Path, jobs: str) -> None:
    for number in range(400):
        (folder / f"m{number}.py").write_text(MODEL)
    command = [sys.executable, "-m", "graphmend", "check", "--fix", "--unsafe-fixes", "--jobs", jobs, "--no-cache"]
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=_heed_interrupts
    )
    deadline = time.monotonic() + 60
    while all(path.read_text() == MODEL for path in folder.glob("m*.py")):  # until the first file is written
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error == "graphmend: interrupted\n"
    assert list(folder.glob(".graphmend-*")) == []
    texts = {path.read_text() for path in folder.glob("m*.py")}
    assert len(texts) == 2, "each file is as it was, or mended"


@pytest.mark.many
def test_parallel_runs_say_what_one_process_says(folder: Path) -> None:
    for number in range(100):
        (folder / f"m{number}.py").write_text(MODEL)
    alone = graphmend("check", "--output-format", "json", "--no-cache", "--jobs", "1", cwd=folder)
    many = graphmend("check", "--output-format", "json", "--no-cache", "--jobs", "2", cwd=folder)
    assert len(json.loads(alone.stdout)) == 100
    assert many.stdout == alone.stdout


class TestCache:
    def check(self, run: Run, *arguments: str) -> list[str]:
        return [item["code"] for item in json.loads(run("check", "--output-format", "json", *arguments).out)]

    def test_second_run_analyses_nothing(self, run: Run, folder: Path, fake: list[str]) -> None:
        (folder / "m.py").write_text("BREAK\nPRINT  # graphmend: ignore\n")
        first = run("check", "--output-format", "json").out
        once = list(fake)
        assert once
        assert run("check", "--output-format", "json").out == first
        assert fake == once
        run("check", "--no-cache")
        assert fake == once * 2

    def test_whatever_may_matter_makes_it_old(self, run: Run, folder: Path, fake: list[str]) -> None:
        from graphmend.workspace import cache

        def fresh() -> None:  # a new process reads the folders anew
            cache.folder_stamp.cache_clear()

        (folder / "m.py").write_text("BREAK\n")
        self.check(run)
        fresh()
        (folder / "m.py").write_text("BREAK\nBREAK\n")
        assert self.check(run) == ["GM101", "GM101"]
        fresh()
        (folder / "imported.py").write_text("x = 1\n")
        both = {str(folder / "m.py"), str(folder / "imported.py")}
        for options, codes in (
            ((), ["GM101", "GM101"]),
            (("--select", "GM2"), []),
            (("--torch-version", "2.6"), ["GM101", "GM101"]),
        ):
            fake.clear()
            assert self.check(run, *options) == codes
            assert set(fake) == both

    @pytest.mark.parametrize(
        "damage", [b"", b"{", b"[]", b'{"stamp": 1}', b"\xff\xfe", b'{"stamp": "STAMP", "data": [1]}']
    )
    def test_damaged_cache_is_as_if_it_were_empty(self, run: Run, folder: Path, fake: list[str], damage: bytes) -> None:
        (folder / "m.py").write_text("BREAK\n")
        self.check(run)
        once = list(fake)
        (entry,) = (path for path in Path(os.environ["GRAPHMEND_CACHE_DIR"]).rglob("*") if path.is_file())
        stamp = json.loads(entry.read_bytes())["stamp"]
        entry.write_bytes(damage.replace(b"STAMP", stamp.encode()))
        assert self.check(run) == ["GM101"]
        assert fake == once * 2

    def test_cache_that_cannot_be_written(
        self, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, fake: list[str]
    ) -> None:
        (folder / "file").write_text("")
        monkeypatch.setenv("GRAPHMEND_CACHE_DIR", str(folder / "file"))
        (folder / "m.py").write_text("BREAK\n")
        outcome = run("check", "--output-format", "concise")
        assert (outcome.status, outcome.err) == (1, "")

    def test_files_that_do_not_parse_are_told_every_time(self, run: Run, folder: Path) -> None:
        (folder / "m.py").write_text("def f(:\n")
        assert run("check").err == run("check").err != ""


@pytest.mark.skipif(os.name != "posix", reason="needs a shell that closes streams")
@pytest.mark.parametrize(("command", "status"), [("check m.py", 1), ("rule GM101", 0), ("run program.py", 3)])
def test_a_closed_output_is_nobody_s(folder: Path, command: str, status: int) -> None:
    (folder / "m.py").write_text(MODEL)
    (folder / "program.py").write_text("import sys\nassert sys.stdout is None\nprint('told')\nsys.exit(3)\n")
    line = f"'{sys.executable}' -m graphmend {command} >&-"
    done = subprocess.run(line, shell=True, cwd=folder, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == status, done.stderr
    assert "internal error" not in done.stderr
