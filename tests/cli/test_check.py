"""`graphmend check` as scripts and people meet it: what it prints, what it ends with, what it leaves on disk."""

from __future__ import annotations

import importlib
import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphmend.analysis.check import Result
from graphmend.analysis.syntax.source import Source

Run = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("fake")


def items(out: str) -> list[tuple[str, int]]:
    return [(item["code"], item["location"]["row"]) for item in json.loads(out)]


def test_statuses(run: Run, folder: Path) -> None:
    (folder / "good.py").write_text("x = 1\n")
    assert run("check", "good.py").status == 0
    (folder / "bad.py").write_text("x = BREAK\n")
    assert run("check", "bad.py").status == 1
    assert run("check", "bad.py", "--exit-zero").status == 0
    assert run("check", "absent.py").status == 2
    assert run("check", "absent.py", "--exit-zero").status == 2
    assert run("check", "--no-such-option").status == 2


def test_json_item_is_the_contract(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("é = 'é'; x = BREAK\n")
    (item,) = json.loads(run("check", "--output-format", "json", "m.py").out)
    assert item | {"url": "", "advice": "", "related": []} == {
        "code": "GM101",
        "name": "tensor-branch",
        "message": "BREAK breaks the graph",
        "filename": str(folder / "m.py"),
        "location": {"row": 1, "column": 14},
        "end_location": {"row": 1, "column": 19},
        "function": "f",
        "region": "compiled",
        "certainty": "certain",
        "effect": "splits",
        "default_flags_only": False,
        "severity": "warning",
        "evidence": ["x is a parameter of f", "BREAK asks for its value"],
        "gb_id": "GB0170",
        "fixes": [
            {"applicability": "unsafe", "message": "use torch.where", "reason": "both sides run", "differences": []}
        ],
        "refusal": None,
        "url": "",
        "advice": "",
        "related": [],
    }
    assert item["url"].endswith("GM101.md")


def test_refusal_says_why_there_is_no_fix(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("PRINT\n")
    (item,) = json.loads(run("check", "--output-format", "json").out)
    assert item["fixes"] == []
    assert item["refusal"] == "the other side is not known"


def test_nothing_found_is_an_empty_array(run: Run, folder: Path) -> None:
    assert json.loads(run("check", "--output-format", "json").out) == []


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"x = '\xff'\n", "m.py: is not UTF-8 (byte 0xff on line 1) and declares no encoding"),
        (b"\x7fELF\0\0", "m.py: is binary: it contains null bytes"),
        (b"# coding: klingon\n", "m.py: unknown encoding: klingon"),
        (b"# coding: hex\nff\n", "m.py: 'hex' is not a text encoding"),
        (b"def f(:\n", "m.py:1:7: does not parse: invalid syntax"),
    ],
)
def test_unreadable_files_cost_one_line_and_no_other_file(run: Run, folder: Path, data: bytes, line: str) -> None:
    (folder / "m.py").write_bytes(data)
    (folder / "z.py").write_text("BREAK\n")
    outcome = run("check", "--output-format", "json")
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert line in outcome.err
    assert items(outcome.out) == [("GM101", 1)]


@pytest.mark.parametrize(
    "data",
    [
        "x = 'é'\ny = BREAK\n".encode(),
        b"\xef\xbb\xbf" + "x = 'é'\ny = BREAK\n".encode(),
        "# coding: latin-1\ny = BREAK, 'é'\n".encode("latin-1"),
        b"x = 1\r\ny = BREAK\r\n",
        b"x = 1\ry = BREAK",
    ],
    ids=["utf-8", "bom", "declared", "crlf", "cr"],
)
def test_fix_keeps_every_other_byte(run: Run, folder: Path, data: bytes) -> None:
    path = folder / "m.py"
    path.write_bytes(data)
    path.chmod(0o751)
    outcome = run("check", "--fix", "--unsafe-fixes", "--output-format", "json")
    assert (outcome.status, outcome.err) == (0, "")
    assert path.read_bytes() == data.replace(b"BREAK", b"MENDED")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751
    assert [p.name for p in folder.iterdir()] == ["m.py"]


def test_fix_alone_writes_safe_mends_only(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("BREAK\nBREAK  # SAFE\n")
    outcome = run("check", "--fix", "--output-format", "concise", "--show-fixes")
    assert (folder / "m.py").read_text() == "BREAK\nMENDED  # SAFE\n"
    assert outcome.status == 1
    assert outcome.out.splitlines()[0] == "m.py:1:1: GM101 [-] BREAK breaks the graph"
    assert "Made 1 mend." in outcome.out


def test_fix_replaces_what_a_link_points_to(run: Run, folder: Path) -> None:
    (folder / "real.py").write_text("BREAK\n")
    (folder / "link.py").symlink_to("real.py")
    run("check", "--fix", "--unsafe-fixes", "link.py")
    assert (folder / "link.py").is_symlink()
    assert (folder / "real.py").read_text() == "MENDED\n"


def test_diff_writes_nothing(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("x = 1\nBREAK")
    outcome = run("check", "--diff", "--unsafe-fixes")
    assert outcome.status == 1
    assert "-BREAK\n\\ No newline at end of file\n+MENDED\n" in outcome.out
    assert (folder / "m.py").read_text() == "x = 1\nBREAK"
    assert run("check", "--diff").status == 0


def test_standard_input(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def typed(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    typed(b"BREAK\n")
    outcome = run("check", "-", "--stdin-filename", "pkg/m.py", "--output-format", "concise")
    assert outcome.out.startswith("pkg/m.py:1:1: GM101")
    typed(b"x\xff")
    outcome = run("check", "-")
    assert (outcome.status, outcome.err) == (
        2,
        "graphmend: standard input is not UTF-8 (byte 0xff on line 1) and declares no encoding\n",
    )
    assert run("check", "-", "other.py").status == 2


def test_paths_given_twice_and_links_in_circles(run: Run, folder: Path, fake: list[str]) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "m.py").write_text("BREAK\n")
    (folder / "a" / "again").symlink_to(folder / "a")
    (folder / "a" / "self.py").symlink_to("self.py")
    outcome = run("check", "a", "a/m.py", ".", "--output-format", "json")
    assert items(outcome.out) == [("GM101", 1)]
    assert set(fake) == {str(folder / "a" / "m.py")}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are POSIX's")
def test_pipe_in_a_folder_is_not_read(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("BREAK\n")
    os.mkfifo(folder / "pipe.py")
    assert run("check", "--output-format", "concise").status == 1


def test_file_that_vanishes_during_the_run(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphmend.cli.commands import check

    for name in ("a.py", "b.py"):
        (folder / name).write_text("BREAK\n")

    def found_before(*arguments: Any, **options: Any) -> Any:
        found = discover(*arguments, **options)
        (folder / "a.py").unlink()
        return found

    discover = check.discover
    monkeypatch.setattr(check, "discover", found_before)
    outcome = run("check", "--output-format", "concise")
    assert outcome.status == 2
    assert outcome.out.startswith("b.py:1:1: GM101")
    assert outcome.err == f"graphmend: {folder / 'a.py'}: no such file or directory\n"


def test_a_file_that_does_not_exist(run: Run, folder: Path) -> None:
    outcome = run("check", "b.py")
    assert outcome.status == 2
    assert outcome.err == f"graphmend: {folder / 'b.py'} does not exist\n"
    assert outcome.out == "Nothing could be checked: 1 problem.\n"
    (folder / "a.py").write_text("x = 1\n")
    outcome = run("check", "a.py", "b.py")
    assert outcome.status == 2
    assert outcome.out == "No graph breaks found, 1 file checked, 1 problem.\n"


@pytest.mark.parametrize(
    ("words", "question"),
    [(["chekc"], "did you mean `check`?"), (["check", "--slect", "GM1"], "did you mean `--select`?")],
)
def test_mistyped_words(run: Run, folder: Path, words: list[str], question: str) -> None:
    outcome = run(*words)
    assert outcome.status == 2
    assert question in outcome.err
    assert outcome.err.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_output_without_room_is_one_line(folder: Path) -> None:
    command = [sys.executable, "-m", "graphmend", "rule", "--all"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "graphmend: the output cannot be written: no space left on device\n"


def test_folder_without_python_is_said(run: Run, folder: Path) -> None:
    outcome = run("check")
    assert (outcome.status, outcome.err) == (0, "graphmend: no Python files under the given paths\n")


def test_output_file_is_written_whole(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("BREAK\n")
    outcome = run("check", "--output-format", "json", "--output-file", "out.json")
    assert (outcome.status, outcome.out) == (1, "")
    assert items((folder / "out.json").read_text()) == [("GM101", 1)]
    assert run("check", "--output-file", folder / "absent" / "out").status == 2


def test_statistics(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("BREAK\nPRINT\nPRINT\n")
    outcome = run("check", "--statistics")
    assert outcome.out.splitlines() == ["     2  GM201  print", "     1  GM101  tensor-branch  (1 mendable)"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may read everything")
def test_file_that_may_not_be_read(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("BREAK\n")
    (folder / "m.py").chmod(0)
    assert "permission denied" in run("check").err


def test_failure_of_a_rule_is_one_line(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setattr("graphmend.cli.checking.file_checker.check", fails)
    (folder / "m.py").write_text("x = 1\n")
    outcome = run("check")
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert "m.py: internal error: ZeroDivisionError: two lines at test_check.py:" in outcome.err


def test_failure_of_a_rewrite_keeps_the_finding(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("graphmend.transforms.mend"), "mend", lambda *_: 1 / 0)
    (folder / "m.py").write_text("BREAK\n")
    outcome = run("check", "--output-format", "json")
    assert items(outcome.out) == [("GM101", 1)]
    assert outcome.status == 2
    assert "m.py:1: internal error: ZeroDivisionError" in outcome.err


def test_what_could_not_be_followed_is_said_also_from_the_cache(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(source: Source, *_: object) -> Result:
        return Result(source, notes=("f is nested too deeply to follow",))

    monkeypatch.setattr("graphmend.cli.checking.file_checker.check", check)
    (folder / "m.py").write_text("x = 1\n")
    for _ in range(2):
        outcome = run("check")
        assert (outcome.status, outcome.err) == (0, f"graphmend: {folder / 'm.py'}: f is nested too deeply to follow\n")
    assert run("check", "--quiet").err == ""


def test_torch_that_is_not_known_is_said_once(run: Run, folder: Path) -> None:
    for name in ("a.py", "b.py"):
        (folder / name).write_text("import torch\n")
    outcome = run("check", "--torch-version", "99.1")
    assert outcome.status == 0
    assert outcome.err == "graphmend: torch 99.1 is newer than known, checked as 2.13\n"
    outcome = run("check", "--torch-version", "2.7.1+rocm6.3")
    assert outcome.err.startswith("graphmend: torch 2.7 is older than 2.8, the oldest that is known: checked as")
    assert outcome.err.count("\n") == 1
    for known in ("2.10", "2.13.0+cpu", "2.13.1.dev20260401+cu130"):
        assert run("check", "--torch-version", known).err == ""
