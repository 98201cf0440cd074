"""Switching GraphMend on in a project that has findings: comments, a baseline, changed lines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("fake")


@pytest.fixture
def found(run: Run) -> Callable[..., list[tuple[str, int]]]:
    """(code, line) of what a check finds."""

    def found(*arguments: str | Path) -> list[tuple[str, int]]:
        outcome = run("check", "--output-format", "json", *arguments)
        return [(item["code"], item["location"]["row"]) for item in json.loads(outcome.out)]

    return found


Found = Callable[..., list[tuple[str, int]]]


def test_comments_and_those_that_are_not_needed(found: Found, folder: Path) -> None:
    (folder / "m.py").write_text("BREAK  # graphmend: ignore[GM101] ok\nx = 1  # graphmend: ignore\n")
    assert found() == [("GM001", 2)]
    assert found("--ignore", "GM001") == []
    assert found("--select", "GM1") == []


def test_fix_leaves_what_a_comment_takes_back(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("BREAK  # graphmend: ignore\nBREAK, 2\n")
    run("check", "--fix", "--unsafe-fixes")
    assert (folder / "m.py").read_text() == "BREAK  # graphmend: ignore\nMENDED, 2\n"


def test_add_ignores(run: Run, found: Found, folder: Path) -> None:
    text = "BREAK\nx = (1,\n     BREAK,\n)\nPRINT  # graphmend: ignore[GM3] old\nif BREAK:\n    pass\n"
    (folder / "m.py").write_text(text)
    outcome = run("check", "--add-ignores", "before 2.0")
    assert outcome.status == 1  # the comment for GM3 is not needed
    assert (folder / "m.py").read_text() == (
        "BREAK  # graphmend: ignore[GM101] before 2.0\n"
        "x = (1,\n     BREAK,\n)  # graphmend: ignore[GM101] before 2.0\n"
        "PRINT  # graphmend: ignore[GM201, GM3] old\n"
        "if BREAK:  # graphmend: ignore[GM101] before 2.0\n    pass\n"
    )
    assert found() == [("GM001", 5)]


def test_baseline_knows_moved_code_and_not_copies(run: Run, found: Found, folder: Path) -> None:
    (folder / "m.py").write_text("x = BREAK\n")
    written = run("check", "--write-baseline", "base.json")
    assert (written.status, written.out, written.err) == (0, "", "graphmend: base.json: 1 known finding\n")
    assert run("check", "--baseline", "base.json").out == "No new graph breaks found, 1 file checked.\n"
    assert found("--baseline", "base.json") == []
    (folder / "m.py").write_text("import torch\n\n\nx   =   BREAK\nx = BREAK\n")
    assert found("--baseline", "base.json") == [("GM101", 5)]
    (folder / "m.py").rename(folder / "elsewhere.py")
    assert found("--baseline", "base.json") == [("GM101", 5)]
    assert found() == [("GM101", 4), ("GM101", 5)]


def test_baseline_counts_for_fix(run: Run, folder: Path) -> None:
    (folder / "m.py").write_text("x = BREAK\n")
    run("check", "--write-baseline", "base.json")
    (folder / "m.py").write_text("x = BREAK\ny = BREAK\n")
    run("check", "--baseline", "base.json", "--fix", "--unsafe-fixes")
    assert (folder / "m.py").read_text() == "x = BREAK\ny = MENDED\n"


def test_baseline_of_the_configuration(run: Run, found: Found, folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/m.py").write_text("BREAK\n")
    (folder / "graphmend.toml").write_text("baseline = 'base.json'\n")
    assert run("check").status == 2  # named, and not there
    run("check", "--write-baseline", "base.json")
    assert found() == []


def test_writing_a_part_of_a_baseline_keeps_the_rest(run: Run, found: Found, folder: Path) -> None:
    (folder / "a.py").write_text("BREAK\n")
    (folder / "b.py").write_text("BREAK\n")
    run("check", "--write-baseline", "base.json")
    (folder / "b.py").write_text("BREAK\nPRINT\n")
    run("check", "b.py", "--write-baseline", "base.json")
    assert found("--baseline", "base.json") == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (None, "the baseline cannot be read: no such file or directory"),
        ("{", "the baseline is not JSON (line 1)"),
        ("[]", "is not a baseline of graphmend"),
        ('{"graphmend-baseline": 99}', "written by a newer graphmend (format 99, known 1)"),
        ('{"graphmend-baseline": 1, "findings": {"a": 3}}', "the baseline is damaged"),
    ],
)
def test_baseline_that_cannot_be_read(run: Run, folder: Path, text: str | None, complaint: str) -> None:
    if text is not None:
        (folder / "base.json").write_text(text)
    outcome = run("check", "--baseline", "base.json")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert complaint in outcome.err


@pytest.fixture
def git(folder: Path) -> Callable[..., None]:
    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)

    git("init", "-q")
    return git


def test_changed_lines_only(run: Run, found: Found, folder: Path, git: Callable[..., None]) -> None:
    (folder / "m.py").write_text("BREAK, 1\nx = 1\nBREAK, 2\n")
    git("add", ".")
    git("commit", "-qm", "first")
    assert found("--diff-from", "HEAD") == []
    (folder / "m.py").write_text("BREAK, 1\nx = 2\ny = BREAK\nBREAK, 2\n")
    (folder / "new é.py").write_text("BREAK\n")
    assert found("--diff-from", "HEAD") == [("GM101", 3), ("GM101", 1)]
    run("check", "--diff-from", "HEAD", "--fix", "--unsafe-fixes", "m.py")
    assert (folder / "m.py").read_text() == "BREAK, 1\nx = 2\ny = MENDED\nBREAK, 2\n"


def test_revision_that_is_none(run: Run, folder: Path, git: Callable[..., None]) -> None:
    outcome = run("check", "--diff-from", "nowhere")
    assert (outcome.status, outcome.err.count("\n")) == (2, 1)
    assert "--diff-from: " in outcome.err
    assert run("check", "--diff-from", "--output=x").status == 2
